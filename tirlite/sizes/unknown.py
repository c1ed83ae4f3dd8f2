"""Unknowns: integers between ends that are sizes; and the ends and linear forms of sizes over unknowns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import TypeAlias

from tirlite.diag import KernelError
from tirlite.record import record, replace
from tirlite.sizes.bounds import Bounds
from tirlite.sizes.dim import Dim
from tirlite.sizes.evaluate import dims_of, substitute
from tirlite.sizes.extrema import Maximum, Minimum, maximum, minimum
from tirlite.sizes.poly import (
    Atom,
    Product,
    Quotient,
    Relaxation,
    Remainder,
    Size,
    Terms,
    bounds_of,
    inside_out,
    of_terms,
    terms_of,
    varies,
)
from tirlite.sizes.prove import ceildiv, is_at_most
from tirlite.sizes.terms import Origin, accumulate

Ends: TypeAlias = "tuple[Size | None, Size | None]"


@record(eq=False)
class Unknown(Atom):
    """An integer from `low` to `high`, both included: sizes without unknowns, or None where no bound is known.

    With `counts` it is the number of completed iterations of the loop `owner`. Else its value is constant during one
    iteration of `owner`, or during one run of the function if that is None. If it is not `steady`, its value may change
    between any two evaluations.
    """

    origin: Origin
    name: str
    low: Size | None = None
    high: Size | None = None
    owner: object = None
    counts: bool = False
    steady: bool = True
    divisor: int = 1
    ident: int = field(init=False, repr=False)
    _hash: int = field(init=False, repr=False)
    bounds: Bounds = field(init=False, repr=False)

    def __post_init__(self) -> None:
        low = None if self.low is None else bounds_of(self.low).low
        high = None if self.high is None else bounds_of(self.high).high
        self._be(self.origin.ident())
        object.__setattr__(self, "bounds", Bounds(low, high))

    @property
    def level(self) -> int:
        return 1

    @property
    def operands(self) -> tuple[Size, ...]:
        return tuple(end for end in (self.low, self.high) if end is not None and not isinstance(end, int))

    def spell(self, operands: Sequence[str]) -> str:
        return self.name.replace(" ", "_")

    def below(self) -> tuple[Relaxation, ...]:
        return () if self.low is None or isinstance(self.low, int) else (Relaxation(self.low),)

    def above(self) -> tuple[Relaxation, ...]:
        return () if self.high is None or isinstance(self.high, int) else (Relaxation(self.high),)


@record
class Linear:
    """`constant` + the sum of `terms[a] * a`, over atoms that vary. No coefficient is 0."""

    constant: Size
    terms: dict[Atom, Size]


def linear(size: Size) -> Linear | None:
    """A size as a sum of multiples of what varies in it, with factors that do not; None where two of them multiply."""
    if isinstance(size, int):
        return Linear(size, {})
    constant: dict[Product, int] = {}
    parts: dict[Atom, dict[Product, int]] = {}
    for product, coefficient in size.terms.items():
        moving = [atom for atom in product if atom.varies]
        if not moving:
            constant[product] = coefficient
        elif len(moving) == 1:
            rest = tuple(atom for atom in product if atom is not moving[0]) if len(product) > 1 else ()
            parts.setdefault(moving[0], {})[rest] = coefficient
        else:
            return None
    return Linear(of_terms(constant), {atom: of_terms(terms) for atom, terms in parts.items()})


def terms_in(size: Size) -> dict[Atom, Size]:
    """The atoms that vary in a size, with their factors; of a product of several, the first one."""
    found: dict[Atom, dict[Product, int]] = {}
    for product, coefficient in terms_of(size).items():
        moving = next((atom for atom in product if atom.varies), None)
        if moving is not None:
            place = product.index(moving)
            found.setdefault(moving, {})[product[:place] + product[place + 1 :]] = coefficient
    return {atom: of_terms(terms) for atom, terms in found.items()}


def unknowns_in(*sizes: Size) -> Iterator[Unknown]:
    """The unknowns that sizes are made of, each once."""
    seen: set[Atom] = set()
    todo = [atom for size in reversed(sizes) for product in reversed(list(terms_of(size))) for atom in product]
    while todo:
        atom = todo.pop()
        if atom in seen or not atom.varies:
            continue
        seen.add(atom)
        if isinstance(atom, Unknown):
            yield atom
        else:
            todo += [each for operand in atom.operands for product in terms_of(operand) for each in product]


def ends(size: Size) -> Ends:
    """Sizes without unknowns that `size` never falls below, and never exceeds; None where none is known.

    Each atom that varies may have any value between its own ends.
    """
    if isinstance(size, int):
        return size, size
    constant: dict[Product, int] = {}
    parts: dict[Product, dict[Product, int]] = {}
    for product, coefficient in size.terms.items():
        moving = tuple(atom for atom in product if atom.varies)
        rest = tuple(atom for atom in product if not atom.varies) if moving else product
        accumulate(parts.setdefault(moving, {}) if moving else constant, {rest: coefficient})
    low: Size | None = of_terms(constant)
    high: Size | None = low
    for moving, factor in parts.items():
        least, most = multiple(_ends_of_product(moving), of_terms(factor))
        low = None if low is None or least is None else low + least
        high = None if high is None or most is None else high + most
    return low, high


def ends_beside(known: Ends, size: Size, facts: Iterable[Size]) -> Ends:
    """The known ends of a size, improved by facts, sizes that are at least 0."""
    low, high = known
    for fact in facts:
        most, least = size + fact, size - fact
        if not varies(most) and (high is None or not is_nonnegative(most - high)):
            high = most
        if not varies(least) and (low is None or not is_nonnegative(low - least)):
            low = least
    return low, high


def _ends_of_product(atoms: Product) -> Ends:
    low, high = ends_of(atoms[0])
    for atom in atoms[1:]:
        if low is None or not is_nonnegative(low):
            return None, None
        least, most = ends_of(atom)
        if least is None or not is_nonnegative(least):
            return None, None
        low, high = low * least, None if high is None or most is None else high * most
    return low, high


def ends_of(atom: Atom) -> Ends:
    """The ends of an atom that varies. A divisor is not 0 where there is a quotient or remainder."""
    if isinstance(atom, Unknown):
        return atom.low, atom.high
    if isinstance(atom, Quotient):
        low, high = ends(atom.dividend)
        least, most = ends(atom.by)
        if least is None or least != most or not is_positive(least):
            # No more than what is divided, by one that is 1 at least wherever there is a quotient.
            is_less = least is not None and low is not None and is_nonnegative(least) and is_nonnegative(low)
            return (0, high) if is_less else (atom.bounds.low, atom.bounds.high)
        return (None if low is None else low // least), (None if high is None else high // least)
    if isinstance(atom, Remainder):
        least, most = ends(atom.by)
        if least is None or not is_nonnegative(least):
            return None, None
        return 0, None if most is None else most - 1
    if isinstance(atom, Maximum):
        lows, highs = zip(*map(ends, atom.sizes), strict=True)
        return _picked(maximum, lows, one=True), _picked(maximum, highs, one=False)
    assert isinstance(atom, Minimum)
    lows, highs = zip(*map(ends, atom.sizes), strict=True)
    return _picked(minimum, lows, one=False), _picked(minimum, highs, one=True)


def _picked(pick: Callable[..., Size], found: Sequence[Size | None], *, one: bool) -> Size | None:
    """The end of an extremum; with `one`, the end of one operand alone is a bound."""
    known = [each for each in found if each is not None]
    return pick(*known) if known and (one or len(known) == len(found)) else None


def multiple(between: Ends, factor: Size) -> Ends:
    """The ends of `factor` times what lies between ends."""
    low, high = between
    if not is_nonnegative(factor):
        if not is_nonnegative(-factor):
            return None, None
        low, high = high, low
    return (None if low is None else low * factor), (None if high is None else high * factor)


def sum_of(sizes: Iterable[Size]) -> Size:
    """The sum of sizes, without making partial sums."""
    number, terms = 0, dict[Product, int]()
    for size in sizes:
        if isinstance(size, int):
            number += size
        else:
            accumulate(terms, terms_of(size))
    accumulate(terms, {(): number} if number else {})
    return of_terms(terms)


def is_nonnegative(size: Size) -> bool:
    """Whether `size` is proved to be 0 or more."""
    return is_at_most(0, size)


def is_positive(size: Size) -> bool:
    """Whether `size` is proved to be 1 or more."""
    return is_at_most(1, size)


def is_positive_beside(size: Size, other: Size) -> bool:
    """Whether `size` is proved to be 1 or more wherever `other` has a value.

    Either by itself, or because a loop counter in `other` has no value if `size` is 0: as n in `i // n`, with i below
    `8 * n`.
    """
    if is_positive(size):
        return True
    dim = next(iter(dims_of(size)), None)
    if dim is None or varies(size) or size - dim != -dim.min or not is_nonnegative(size):
        return False
    lasts = [each.high for each in unknowns_in(other) if each.counts and each.high is not None]
    return any(
        is_nonnegative(-1 - substitute(last, {dim: dim.min}))
        for last in lasts
        if dim in dims_of(last)
        and not any(isinstance(atom, Quotient | Remainder) and dim in dims_of(atom.by) for atom in inside_out(last))
    )


def quotient(x: Size, by: Size) -> Size:
    """`x // by`, simplified by the ends of unknowns where the dividend is less than a symbolic `by`."""
    found = x // by
    for atom, factor in _divided(found, by):
        if isinstance(atom, Quotient) and _is_less(atom.dividend, atom.by):
            found = found - factor * atom
    return found


def remainder(x: Size, by: Size) -> Size:
    """`x % by`, likewise."""
    found = x % by
    for atom, factor in _divided(found, by):
        if isinstance(atom, Remainder) and _is_less(atom.dividend, atom.by):
            found = found + factor * (atom.dividend - atom)
    return found


def _divided(found: Size, by: Size) -> Iterator[tuple[Atom, Size]]:
    """The atoms to simplify; none where `by` is a number, as bounds are enough then."""
    yield from () if isinstance(by, int) else terms_in(found).items()


def _is_less(x: Size, y: Size) -> bool:
    low, high = ends(x)
    return low is not None and high is not None and is_nonnegative(low) and is_positive(y - high)


def relation_of(atom: Atom) -> Size | None:
    """A sum that is always 0: the equation between a quotient or remainder, the other one, and the dividend."""
    if isinstance(atom, Quotient):
        return atom.dividend - atom.by * atom - atom.dividend % atom.by
    if isinstance(atom, Remainder):
        return atom.dividend - atom.by * (atom.dividend // atom.by) - atom
    return None


def recombined(size: Size) -> Size:
    """An equal sum, with quotients and remainders of the same dividend recombined where that leaves fewer divisions."""
    if isinstance(size, int):
        return size
    for product, factor in size.terms.items():
        atom = product[0] if len(product) == 1 else None
        if isinstance(atom, Remainder):
            whole = size + factor * (atom.dividend - atom.by * (atom.dividend // atom.by) - atom)
        elif isinstance(atom, Quotient) and isinstance(atom.by, int) and factor % atom.by == 0:
            whole = size + factor // atom.by * (atom.dividend - atom.dividend % atom.by) - factor * atom
        else:
            continue
        if _divisions(whole) < _divisions(size):
            return recombined(whole)
    return size


def _divisions(size: Size) -> int:
    return sum(isinstance(atom, Quotient | Remainder) for product in terms_of(size) for atom in product)


# This many sums are written for one that is over extrema, itself included.
_MOST_FORMS = 6


def forms_of(size: Size) -> list[Size]:
    """Sums equal to `size`, with an operand of an extremum and the distance from it in place of the extremum.

    So `max(i - 1, 0)` becomes `i - 1 + max(0, 1 - i)`.
    """
    found = [size]
    for each in found:
        for atom, factor in terms_in(each).items():
            if isinstance(atom, Maximum | Minimum):
                bare = each - factor * atom
                found += [f for operand in atom.sizes if (f := bare + factor * _seen_from(operand, atom)) not in found]
        if len(found) >= _MOST_FORMS:
            break
    return found[:_MOST_FORMS]


def _seen_from(operand: Size, atom: Maximum | Minimum) -> Size:
    """An extremum as one of its operands, plus or minus a distance that is not negative."""
    if isinstance(atom, Maximum):
        return operand + maximum(*(each - operand for each in atom.sizes))
    return operand - maximum(*(operand - each for each in atom.sizes))


def follows(goal: Size, facts: Sequence[Size]) -> bool:
    """Whether `goal >= 0` follows from facts, sizes that are at least 0: by itself, or by a multiple of one of them."""
    return any(
        _starts_at_zero(form) or any(_starts_at_zero(form - scale * f) for f in facts for scale in scales(form, f))
        for form in forms_of(goal)
    )


def scales(goal: Size, fact: Size) -> Iterator[int]:
    """The factors by which a fact cancels a term of the goal."""
    factors: dict[int, None] = {}
    terms = terms_of(goal)
    for product, coefficient in terms_of(fact).items():
        wanted = terms.get(product) if product else None
        if wanted is not None and wanted % coefficient == 0:
            factors[wanted // coefficient] = None
    return (factor for factor in factors if factor > 0)


def _starts_at_zero(size: Size) -> bool:
    low = ends(size)[0]
    return low is not None and is_nonnegative(low)


def narrowed(facts: Iterable[Size]) -> tuple[dict[Atom, Size], list[Size]]:
    """What takes the place of some atoms where sums are 0 or more, and the sums over these.

    A sum over one dim or unknown alone gives it a bound.
    """
    changes: dict[Atom, Size] = {}
    known: list[Size] = []
    for given in facts:
        fact = substitute(given, changes) if changes else given
        found = narrower(fact)
        if found is not None:
            atom, new = found
            change: dict[Atom, Size] = {atom: new + 0}
            changes = {old: substitute(size, change) for old, size in changes.items()} | change
            known = [substitute(each, change) for each in known]
            fact = substitute(fact, change)
        known.append(fact)
    return changes, known


def narrower(fact: Size) -> tuple[Atom, Atom] | None:
    """The one dim or unknown that a fact is about, and another one in the bounds that it then has."""
    parts = linear(fact)
    if parts is None or isinstance(fact, int):
        return None
    if not parts.terms:
        return _narrower_dim(fact.terms)
    ((atom, factor), *more) = parts.terms.items()
    if more or not isinstance(factor, int) or not isinstance(atom, Unknown):
        return None
    if factor > 0:
        low = ceildiv(-parts.constant, factor)
        return atom, replace(atom, low=low if atom.low is None else maximum(atom.low, low))
    high = parts.constant // -factor
    return atom, replace(atom, high=high if atom.high is None else minimum(atom.high, high))


def _narrower_dim(terms: Terms) -> tuple[Atom, Atom] | None:
    products = [product for product in terms if product]
    if len(products) != 1 or len(products[0]) != 1 or not isinstance(dim := products[0][0], Dim):
        return None
    factor, constant = terms[products[0]], terms.get((), 0)
    try:
        if factor > 0:
            return dim, replace(dim, min=max(dim.low, -(constant // factor)))
        high = constant // -factor
        return dim, replace(dim, max=high if dim.high is None else min(dim.high, high))
    except KernelError:  # no value is left: what stands here is never reached
        return None
