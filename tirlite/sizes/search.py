"""Finds lower bounds of sums of atoms by a bounded search.

Atoms are first taken as independent variables in their bounds (`box`). Where that is not enough they are replaced, one
at a time, by simpler sizes that bound them, or by each of the sizes that they may equal.

Digits: `h//4` is `2*(h//8)` and a digit, which is 0 or 1. So `h//4 - 2*(h//8)` is that digit, and not below 0, which
bounds of each quotient alone do not tell. And twice `h//8` is `h//4` less the digit: so `h//4 - h//8`, of an `h` from 4
on, is at least 1.

Covers: in a sum over many unrelated dims, each negative term is covered by a positive term of its own. That proves that
a slot in a row of many ends within the row. Each cover is a small proof about few dims, while a search of the whole sum
would try all combinations of bounds of its terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import TypeVar

from tirlite.diag import KernelError
from tirlite.groups import by_key
from tirlite.record import record
from tirlite.sizes.bounds import Bounds
from tirlite.sizes.box import minimum_in_box
from tirlite.sizes.dim import Dim
from tirlite.sizes.division import divisor_of
from tirlite.sizes.evaluate import Evaluated, dims_of, sample_bindings
from tirlite.sizes.poly import Atom, Product, Quotient, Relaxation, Terms, inside_out, of_terms, terms_of, varies
from tirlite.sizes.terms import Factor, accumulate, multiply, replace, without

# A sum over more dims than this is looked at in this way.
MANY_DIMS = 2
# Of fewer terms none is left out of a cover.
_FEWEST = 3
# Covers that may turn out to be none, and negative terms of which the sum is sampled.
_FAILURES, _SAMPLED = 64, 8
_LARGE = 1000
# Steps of dims just above a low end, where what is rounded up weighs most, and far from it.
_NEAR, _FAR = 4, 1 << 20

# A lower bound of a sum that reaches 0 if one is found that does.
Bound = Callable[[Terms], "int | None"]


def covered_minimum(terms: Terms, bound: Bound) -> int | None:
    """A lower bound of the sum, or None where no cover is found for some negative term.

    Negative terms over the same dims are covered together, by one term or by all that are over the same dims: of
    `round_up(96 * n, 64)` there are two, `64 * n` and `64 * ((n + 1) // 2)`.
    """
    if sum(map(bool, terms)) < _FEWEST or any(not atom.bounds.nonnegative for product in terms for atom in product):
        return None
    dims = {product: dims_of(of_terms({product: 1})) for product in terms if product}
    free = _Free({product: over for product, over in dims.items() if terms[product] > 0})
    negative = by_key((over, product) for product, over in dims.items() if terms[product] < 0)
    failures = 0
    for over, needed in sorted(negative.items(), key=lambda each: len(free.meeting(each[0]))):
        for cover in free.covers(over):
            if failures > _FAILURES or len(needed) + len(cover) == len(dims):
                return None
            found = bound({product: terms[product] for product in (*needed, *cover)})
            if found is not None and found >= 0:
                free.take(cover)
                break
            failures += 1
        else:
            return None
    return terms.get((), 0) + (minimum_in_box({product: terms[product] for product in free.products}) or 0)


class _Free:
    """Positive terms that cover nothing yet, those over the fewest dims first."""

    def __init__(self, dims: Mapping[Product, tuple[Dim, ...]]) -> None:
        self._dims = dims
        self.products = {product: place for place, product in enumerate(sorted(dims, key=lambda each: len(dims[each])))}
        self._over = by_key((dim, product) for product in self.products for dim in dims[product])

    def meeting(self, over: tuple[Dim, ...]) -> list[Product]:
        """The terms that have some of these dims."""
        found = {product for dim in over for product in self._over.get(dim, ()) if product in self.products}
        return sorted(found, key=self.products.__getitem__)

    def covers(self, over: tuple[Dim, ...]) -> list[list[Product]]:
        """Candidates to cover a term over these dims: terms with some of them, then groups over the same dims."""
        found = self.meeting(over)
        groups = by_key((self._dims[product], product) for product in found)
        return [*([product] for product in found), *(group for group in groups.values() if len(group) > 1)]

    def take(self, cover: Sequence[Product]) -> None:
        for product in cover:
            del self.products[product]


def telling_bindings(terms: Terms) -> Iterator[Mapping[Dim, int]]:
    """Bindings at which one negative term is large and terms of other dims are small, where sums may be least."""
    dims = dims_of(of_terms(terms))
    negative = [product for product, coefficient in terms.items() if product and coefficient < 0]
    for product in negative[:_SAMPLED]:
        large = set(dims_of(of_terms({product: 1})))
        yield {dim: dim.nth(_LARGE if dim in large else 0) for dim in dims}


@record
class _Digit(Factor):
    """The difference between a quotient by a number and a multiple of the quotient by a multiple of it."""

    ident: int
    bounds: Bounds
    divisor: int = 1


@record
class _FloorForm:
    """An atom as `(size + constant) // by`; `size` are the terms of what several of them divide."""

    atom: Atom
    size: frozenset[tuple[Product, int]]
    constant: int
    by: int


def minimum_by_digits(terms: Terms, target: int | None = None) -> int | None:
    """A lower bound of the sum, or None: also where no two atoms divide one size, and where plainly no bound reaches
    `target`.
    """
    links = list(_links(list(dict.fromkeys(_floor_form(atom) for product in terms for atom in product))))
    if not links:
        return None
    # Atoms and digits are factors alike to the box.
    coarse: Mapping[tuple[Factor, ...], int] = {(*product,): coefficient for product, coefficient in terms.items()}
    fine, scale = coarse, 1
    try:
        for link in links:
            coarse = replace(coarse, {link.fine: link.of_coarse})
        found = minimum_in_box(coarse, target)
        if _reached(found, target):
            return found
        for link in reversed(links):
            power = max((product.count(link.coarse) for product in fine), default=0)
            whole = {product: c * link.times ** (power - product.count(link.coarse)) for product, c in fine.items()}
            fine, scale = replace(whole, {link.coarse: link.of_fine}), scale * link.times**power
    except KernelError:  # of too many terms
        return None
    value = minimum_in_box(fine, None if target is None else target * scale)
    return _better(found, None if value is None else -(-value // scale))


def _floor_form(atom: Atom) -> _FloorForm:
    if not isinstance(atom, Quotient) or not isinstance(atom.by, int):
        return _FloorForm(atom, frozenset({((atom,), 1)}), 0, 1)
    size = {**terms_of(atom.dividend)}
    constant = size.pop((), 0)
    return _FloorForm(atom, frozenset(size.items()), constant, atom.by)


@record
class _Link:
    """Two atoms with `fine == times * coarse + digit - less`."""

    fine: Factor
    coarse: Factor
    times: int
    digit: _Digit
    less: int

    @property
    def of_coarse(self) -> Mapping[tuple[Factor, ...], int]:
        """`fine` by that equation."""
        return _sum_of({(self.coarse,): self.times, (self.digit,): 1, (): -self.less})

    @property
    def of_fine(self) -> Mapping[tuple[Factor, ...], int]:
        """`times * coarse` by that equation."""
        return _sum_of({(self.fine,): 1, (self.digit,): -1, (): self.less})


def _sum_of(terms: Mapping[tuple[Factor, ...], int]) -> Mapping[tuple[Factor, ...], int]:
    return {product: coefficient for product, coefficient in terms.items() if coefficient}


def _links(parts: list[_FloorForm]) -> Iterator[_Link]:
    """Each atom with one whose divisor is a multiple of its own, the smallest divisors first."""
    ordered = sorted(parts, key=lambda part: (part.by, part.constant))
    for place, fine in enumerate(ordered):
        coarse = next(
            (each for each in ordered[place + 1 :] if each.size == fine.size and each.by % fine.by == 0), None
        )
        if coarse is not None:
            times = coarse.by // fine.by
            # With other constants, the sizes that are divided are `whole` or one more of the smaller divisors apart.
            whole, rest = divmod(coarse.constant - fine.constant, fine.by)
            digit = _Digit(-1 - place, Bounds(0, times - 1 + (rest > 0)))
            yield _Link(fine.atom, coarse.atom, times, digit, whole + (rest > 0))


# Sums that are looked into further. Proofs that matter take a handful; the limit keeps hopeless ones cheap.
# It bounds the recursion as well. A sum counts once for each hundred terms.
BUDGET, _COUNTED = 50, 100
# This many answers are kept: the same few sums are asked about again and again, access by access.
_KEPT = 4096

_Kept = frozenset[tuple[Atom, bool]]
F = TypeVar("F", bound=Factor)

# Pairs of factors that are looked at.
_MOST_PAIRS = 3


def best_lower_bound(terms: Terms, target: int | None = None, budget: int = BUDGET) -> int | None:
    """A lower bound of the sum, or None. The search ends once it has reached `target`, or looked into `budget` sums."""
    # All values of the sum lie whole steps apart: a bound between two of them is as good as the upper one.
    step = divisor_of({product: coefficient for product, coefficient in terms.items() if product}) or 1
    constant = terms.get((), 0)
    wanted = None if target is None else target + (constant - target) % step - (step - 1)
    found = _lower_bound(terms, wanted, budget)
    return None if found is None else found + (constant - found) % step


def _lower_bound(terms: Terms, target: int | None, budget: int) -> int | None:
    found = minimum_in_box(terms, target)
    if _reached(found, target):
        return found
    if all(len(product) < 2 and not any(atom.operands for atom in product) for product in terms):
        return found  # where no two atoms meet, it is the least value itself
    return _better(found, _looked_into(tuple(terms.items()), target, budget))


@lru_cache(_KEPT)
def _looked_into(items: tuple[tuple[Product, int], ...], target: int | None, budget: int) -> int | None:
    """A lower bound of a sum whose terms depend on each other, if any is found. It may depend on their order."""
    terms = dict(items)
    # Most of what is asked is not so, and a few samples tell at a fraction of what a proof takes.
    if target is not None and _falls_below(terms, target):
        return None
    by_digits = minimum_by_digits(terms, target)
    if _reached(by_digits, target):
        return by_digits
    if not any(atom.operands for product in terms for atom in product):
        return minimum_by_order(terms)
    found: int | None = None
    if target is not None and len(dims_of(of_terms(terms))) > MANY_DIMS:
        found = covered_minimum(terms, lambda pair: _lower_bound(pair, 0, budget))
        if _reached(found, target):
            return found
    return _better(found, _Search(budget).lower(terms, target, frozenset()))


def _falls_below(terms: Terms, target: int) -> bool:
    """Whether the sum is below `target` at a sample binding, so that there is no proof."""
    size = of_terms(terms)
    if varies(size):
        return False
    try:
        dims = dims_of(size)
        telling = telling_bindings(terms) if len(dims) > MANY_DIMS else ()
        # The first few tell most of what the others would, and each group is worked out at once.
        samples = (sample_bindings(dims), (*_far_bindings(dims), *telling))
        return any(min(Evaluated(each).values(size)) < target for each in samples)
    except KernelError:  # a division by zero
        return False


def _far_bindings(dims: Sequence[Dim]) -> Iterator[Mapping[Dim, int]]:
    """Bindings at which the products of most factors decide, and ones where those of every other dim do."""
    for rows in ((_NEAR, _NEAR), (_FAR, _FAR), (_NEAR, _FAR), (_FAR, _NEAR)):
        yield {dim: dim.nth(rows[place % 2] + place) for place, dim in enumerate(dims)}


class _Search:
    """One search, with a budget."""

    def __init__(self, budget: int) -> None:
        self._left = budget

    def lower(self, terms: Terms, target: int | None, kept: _Kept) -> int | None:
        """`kept` names atoms that stay independent variables, by the sign of the terms that they are in."""
        best = minimum_in_box(terms, target)
        composite = _composite_atoms(terms)
        if not composite or _reached(best, target) or self._left <= 0:
            return best
        self._left -= 1 + len(terms) // _COUNTED
        for atom in composite:
            definition = atom.definition()
            if definition is not None:
                return _better(best, self.lower(replace(terms, {atom: terms_of(definition)}), target, kept))
        for atom in composite:
            if atom.choices() and not self._bounded_by_one(terms, atom):
                return _better(best, self._least_choice(terms, atom, target, kept))
        for atom in composite:
            for negative in (False, True):
                if (atom, negative) not in kept:
                    variants = self._variants(terms, atom, negative)
                    if variants:
                        return self._best_variant(best, variants, terms, target, kept, (atom, negative))
        return best

    def _least_choice(self, terms: Terms, atom: Atom, target: int | None, kept: _Kept) -> int | None:
        found = []
        for choice in atom.choices():
            value = self.lower(replace(terms, {atom: terms_of(choice)}), target, kept)
            if value is None or (target is not None and value < target):
                return None
            found.append(value)
        return min(found)

    def _best_variant(
        self,
        best: int | None,
        variants: Sequence[tuple[Terms, int]],
        terms: Terms,
        target: int | None,
        kept: _Kept,
        place: tuple[Atom, bool],
    ) -> int | None:
        """The best bound over the `variants` and, last, over `terms` with the atom kept as it is.

        Of a power a variant replaces one factor, so that the next may be replaced by another bound.
        """
        for variant, scale in variants:
            value = self.lower(variant, None if target is None else target * scale, kept)
            best = _better(best, None if value is None else -(-value // scale))
            if _reached(best, target):
                return best
        return _better(best, self.lower(terms, target, kept | {place}))

    def _bounded_by_one(self, terms: Terms, atom: Atom) -> bool:
        """Whether replacing the atom by one of its relaxations bounds every term with it; else it takes all choices."""
        sides = {False: bool(atom.below()), True: bool(atom.above())}
        return all(
            sides[coefficient < 0] and _nonnegative(rest)
            for product, coefficient in terms.items()
            if (rest := without(product, (atom,))) is not None
        )

    def _variants(self, terms: Terms, atom: Atom, negative: bool) -> list[tuple[Terms, int]]:
        """Sums of at most `scale * terms`, one for each relaxation that bounds the atom in the terms of one sign."""
        relaxations = atom.above() if negative else atom.below()
        return [
            (variant, relaxation.scale)
            for relaxation in relaxations
            if (variant := self._relaxed(terms, atom, negative, relaxation)) is not None
        ]

    def _relaxed(self, terms: Terms, atom: Atom, negative: bool, relaxation: Relaxation) -> Terms | None:
        result: dict[Product, int] = {}
        changed = False
        for product, coefficient in terms.items():
            rest = without(product, (atom, *relaxation.by)) if (coefficient < 0) == negative else None
            if rest is None or not _nonnegative(rest):
                accumulate(result, {product: coefficient}, relaxation.scale)
            else:
                accumulate(result, multiply({rest: coefficient}, terms_of(relaxation.size)))
                changed = True
        return result if changed else None


def _composite_atoms(terms: Terms) -> list[Atom]:
    """The atoms that are functions of others, outer ones first: replacing those brings inner ones to light."""
    atoms = list(dict.fromkeys(atom for product in terms for atom in product if atom.operands))
    return sorted(atoms, key=lambda atom: (-_height(atom), atom.ident)) if len(atoms) > 1 else atoms


@lru_cache(_KEPT)
def _height(atom: Atom) -> int:
    """How many functions stand in one another in an atom."""
    heights: dict[Atom, int] = {}
    for each in inside_out(atom):
        inner = (heights[below] for operand in each.operands for product in terms_of(operand) for below in product)
        heights[each] = 1 + max(inner, default=0)
    return heights[atom]


def _nonnegative(product: Product) -> bool:
    return all(atom.bounds.nonnegative for atom in product)


def _reached(value: int | None, target: int | None) -> bool:
    return value is not None and target is not None and value >= target


def _better(a: int | None, b: int | None) -> int | None:
    return max((value for value in (a, b) if value is not None), default=None)


@record
class _Distance(Factor):
    """How far the greater of two factors is from the other one."""

    ident: int = -1
    divisor: int = 1
    bounds: Bounds = Bounds(0, None)


def minimum_by_order(terms: Mapping[tuple[F, ...], int]) -> int | None:
    """A lower bound of the sum, or None, by pairs of factors whose product is negative and whose squares are positive.

    `n*n - 2*n*m + m*m` falls and rises with either factor; with `n = m + d` it is `d*d`.
    """
    best: int | None = None
    for pair, _ in zip(_pairs(terms), range(_MOST_PAIRS), strict=False):
        found = [_with_greater(terms, *pair), _with_greater(terms, *reversed(pair))]
        values = [value for value in found if value is not None]
        if len(values) == len(found):
            best = min(values) if best is None else max(best, min(values))
    return best


def _pairs(terms: Mapping[tuple[F, ...], int]) -> Iterator[tuple[F, F]]:
    squared = {factor for product, c in terms.items() if c > 0 for factor in product if product.count(factor) > 1}
    met: set[tuple[F, F]] = set()
    for product, coefficient in terms.items():
        if coefficient < 0:
            for pair in combinations(dict.fromkeys(factor for factor in product if factor in squared), 2):
                if pair not in met:
                    met.add(pair)
                    yield pair


def _with_greater(terms: Mapping[tuple[F, ...], int], greater: F, less: F) -> int | None:
    widened: dict[tuple[Factor, ...], int] = {(*product,): coefficient for product, coefficient in terms.items()}
    return minimum_in_box(replace(widened, {greater: {(less,): 1, (_Distance(),): 1}}))
