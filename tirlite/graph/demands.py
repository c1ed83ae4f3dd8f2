"""Records what operators demand of extents: equalities of sizes that are not proved become checks at the call.

While a graph is built, sizes that must be equal are joined as in a union-find structure: one atom of a size - a dim, or
a quotient, a maximum - stands for the other size from then on, so that what is asked once is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import gcd, lcm

from tirlite.diag import Span, TirliteError
from tirlite.graph.extents import is_equal
from tirlite.graph.run_dims import run_dims
from tirlite.record import record, replace
from tirlite.sizes import Dim, Proof, Size, dims_of, evaluate, is_at_most, prove_eq, prove_le, prove_lt, substitute
from tirlite.sizes.dim import Scalar
from tirlite.sizes.extrema import Maximum, Minimum
from tirlite.sizes.poly import Atom, Composite, Quotient, as_size, atom_of, inside_out, of_terms, terms_of
from tirlite.sizes.residues import residues_where_0

# The most rounds of substitution. A solution does not contain the atom that it replaces, but functions of atoms may
# turn into one another.
_ROUNDS = 8


@record
class Demand:
    """Two sizes that must be equal - or, with `is_most`, the left one at most the right one - in each call.

    `asked_by` is the call of the operator that asks it. `is_told` says that the types of the parameters, with the facts
    of their dims, refuse all calls in which it does not hold: `left` and `right` are then as they were asked, and may
    have dims that no type has any more. `said` is what it comes to, where that is shorter: `h % 32 == 0`.
    """

    left: Size
    right: Size
    asked_by: str
    is_most: bool = False
    is_told: bool = False
    span: Span | None = None
    said: str = ""

    def holds(self, binding: Mapping[Dim, int]) -> bool:
        """Whether it holds at these values of the dims; not if a side divides by 0."""
        values = self.values(binding)
        return len(values) == 2 and (values[0] <= values[1] if self.is_most else values[0] == values[1])

    def values(self, binding: Mapping[Dim, int]) -> tuple[int, ...]:
        """The values of both sides; none if one divides by 0."""
        try:
            return evaluate(self.left, binding), evaluate(self.right, binding)
        except TirliteError:
            return ()

    @property
    def dims(self) -> tuple[Dim, ...]:
        return tuple(dict.fromkeys((*dims_of(self.left), *dims_of(self.right))))

    @property
    def limit(self) -> tuple[Size, int] | None:
        """A size and its minimum, if the demand is a bound by a number: of `n <= 9` these are -n and -9; else None."""
        if self.is_most and isinstance(self.left, int):
            return self.right, self.left
        return (-self.left, -self.right) if self.is_most and isinstance(self.right, int) else None

    @property
    def message(self) -> str:
        """The message for a call in which it does not hold."""
        return f"`{self.asked_by}` demands that {self}"

    def __str__(self) -> str:
        return self.said or f"{self.left} {'<=' if self.is_most else '=='} {self.right}"


@record
class Checkpoint:
    """The state of all demands at some time."""

    asked: tuple[Demand, ...]
    stands: Mapping[Atom, Size]


class Demands:
    """The demands on sizes while one graph is built, and the substitutions of atoms that follow from them."""

    def __init__(self) -> None:
        self._asked: list[Demand] = []
        self._stands: dict[Atom, Size] = {}
        self._dims: dict[str, int] = {}
        self._forgotten = 0
        # The number of branches and loop bodies being imported. A call may not run these, so bounds demanded inside do
        # not become facts of dims.
        self.inside = 0
        self.found_equal: list[tuple[Size, Size]] | None = None

    @property
    def changes(self) -> tuple[int, int]:
        """A version of the substitutions: if it has changed, expressions built before may be out of date."""
        return (len(self._stands), self._forgotten)

    @property
    def has_changed(self) -> bool:
        """Whether any atom is substituted."""
        return bool(self._stands)

    def mark(self) -> Checkpoint:
        """The current state, for `back_to`."""
        return Checkpoint(tuple(self._asked), dict(self._stands))

    def has_asked_since(self, mark: Checkpoint) -> bool:
        return len(self._asked) > len(mark.asked)

    def limits_since(self, mark: Checkpoint) -> dict[Dim, tuple[Demand, int]]:
        """The dims for which a minimum above 1 was demanded since, with the strictest demand and its minimum."""
        found: dict[Dim, tuple[Demand, int]] = {}
        for each in self._asked[len(mark.asked) :]:
            size, least = each.limit or (0, 0)
            for dim in atom_of(size, Dim) if least > 1 else ():
                if dim.name in self._dims and (dim not in found or found[dim][1] < least):
                    found[dim] = each, least
        return found

    def put(self, sizes: Mapping[Atom, Size]) -> None:
        """Replaces dims by these sizes from now on, until `back_to`."""
        self._stands |= sizes

    def back_to(self, mark: Checkpoint) -> None:
        """Undoes all demands since, for a part of a graph that is left out after all."""
        self._asked, self._stands = [*mark.asked], dict(mark.stands)
        self._forgotten += 1

    def know(self, dim: Dim) -> None:
        """A dim of a parameter: of two that turn out to be equal, the one that was known first stays."""
        self._dims.setdefault(dim.name, len(self._dims))

    def now(self, size: Size) -> Size:
        """The size over atoms that nothing replaces."""
        for _ in range(len(self._stands) + _ROUNDS if self._stands else 0):
            known = {atom: other for atom in inside_out(size) if (other := self._stand(atom)) is not None}
            if not known:
                break
            size = substitute(size, known)
        return size

    def _stand(self, atom: Atom) -> Size | None:
        """The replacement of an atom, if any; for `n//32` also an eighth of that of `n//4`."""
        if atom not in self._stands and isinstance(atom, Quotient) and isinstance(atom.by, int):
            for other, size in self._stands.items():
                by = other.by if isinstance(other, Quotient) and other.dividend == atom.dividend else 0
                if isinstance(by, int) and by > 0 and not atom.by % by and (part := size // (atom.by // by)) != atom:
                    return part
        return self._stands.get(atom)

    def ask(self, a: Size, b: Size, asked_by: object, span: Span | None) -> bool:
        """Whether the two are equal by proof, or from now on by demand; not where they never are.

        Of run-time extents nothing is demanded of a call, nor is a fact of a dim by what a call may not run:
        these are noted in `found_equal`, if there is one.
        """
        a, b = self.now(a), self.now(b)
        if is_equal(a, b):
            return True
        if prove_eq(a, b) is Proof.NO:
            return False
        is_found = bool(run_dims((a, b)))
        solution = {} if is_found else self._solution(a, b)
        if not solution or (self.inside and any(map(_is_fact, solution, solution.values()))):
            if self.found_equal is None:
                return False
            if not solution and not is_found:
                self._asked.append(Demand(a, b, str(asked_by), span=span))
            self.found_equal.append((a, b))
            return True
        limits = [limit for atom, size in solution.items() if isinstance(atom, Dim) for limit in _limits(atom, size)]
        if any(_is_refuted(*limit) for limit in limits):
            return False
        for left, right, is_most in ((a, b, False), *limits):
            self._asked.append(Demand(left, right, str(asked_by), is_most, span=span))
        for atom, size in solution.items():
            self._put(atom, size, asked_by, span)
        self._turn(asked_by, span)
        return True

    def assume(self, a: Size, b: Size, asked_by: object, span: Span | None, *, is_most: bool = False) -> None:
        """Notes that the two must be equal, or the first at most the second, without telling one by the other.

        What it says of a single dim is a fact of that from now on, by which what is the greater of two sizes is told.
        """
        left, right = _with_numbers_left(a, b) if is_most else (a, b)
        self._asked.append(Demand(left, right, str(asked_by), is_most, span=span))
        if is_most and not self.inside:
            for dim, known in self._bounded(left, right):
                self._put(dim, as_size(known), asked_by, span)

    def _bounded(self, left: Size, right: Size) -> Iterator[tuple[Dim, Dim]]:
        """The parameters' dims that a bound by a number restricts, and the dims with that bound as a fact.

        A minimum of 1 is not made a fact, since as such it would let empty arrays pass.
        """
        for dim in (*atom_of(left, Dim), *atom_of(right, Dim)):
            low, high = (size if isinstance(size, int) else None for size in (left, right))
            least = dim.min if low is None or low < 2 else max(low, dim.min)
            most = dim.max if high is None else min(high, dim.max or high)
            made = _dim(dim.name, least, most, dim.multiple_of) if dim.name in self._dims else None
            if made is not None and made != dim and not isinstance(dim, Scalar):
                yield dim, made

    def settled(self) -> tuple[Demand, ...]:
        """All demands, over the remaining dims; of several bounds on one size only the narrowest.

        Of demands on the remainders of one dim, those that others imply are dropped.
        """
        made: dict[object, Demand] = {}
        for each in self._asked:
            shown = self._settled(each)
            limit = shown.limit
            sides = (shown.left, shown.right) if shown.is_most else frozenset((shown.left, shown.right))
            place = sides if limit is None else (self._by_dims(limit[0]), "limit")
            known = made.setdefault(place, shown)
            if limit is not None and known.limit is not None and known.limit[1] < limit[1]:
                made[place] = shown
        return tuple(_without_implied([*made.values()]))

    def _settled(self, demand: Demand) -> Demand:
        left, right = (self._by_dims(size) for size in (demand.left, demand.right))
        told = proof_of_most(left, right) is Proof.YES if demand.is_most else is_equal(left, right)
        return replace(demand, is_told=True) if told else replace(demand, left=left, right=right)

    def _by_dims(self, size: Size) -> Size:
        """Substitutes dims by the remaining ones, but no other atoms, so that demands on those stay visible."""
        return substitute(size, {dim: self.now(as_size(dim)) for dim in dims_of(size)})

    def _put(self, atom: Atom, size: Size, asked_by: object, span: Span | None) -> None:
        """Substitutes `size` for `atom` from now on, also inside the atoms that are already substituted."""
        older = [each for each in self._stands if isinstance(each, Composite) and atom in inside_out(as_size(each))]
        self._stands[atom] = size
        for each in older:
            renamed = substitute(as_size(each), {atom: size})
            self.ask(renamed, self._stands[each], asked_by, span)

    def _turn(self, asked_by: object, span: Span | None) -> None:
        """Turns substitutions by a difference into ones by a sum: `s = t - p` becomes `t = s + p`.

        Sums are never negative, so that no maximum with 0 is needed and sizes can be compared.
        """
        for dim in [each for each in self._stands if isinstance(each, Dim)]:
            size = self.now(self._stands[dim])
            if is_at_most(0, size) or any(each.name == dim.name for each in dims_of(size)):
                continue
            for other, parts in self._by_a_dim(dim - size).items():
                limits = _limits(other, parts) if isinstance(other, Dim) else []
                if other == dim or any(_is_refuted(*each) for each in limits):
                    continue
                del self._stands[dim]
                self._asked += [Demand(*each[:2], str(asked_by), each[2], span=span) for each in limits]
                self._put(other, parts, asked_by, span)

    def _solution(self, a: Size, b: Size) -> dict[Atom, Size]:
        """The atoms to replace, with their sizes, so that the two are equal; empty if no solution is found."""
        pair = (*atom_of(a, Dim), *atom_of(b, Dim))
        if len(pair) == 2:
            return _joined(*sorted(pair, key=self._place))
        difference = _without_factors(a - b)
        known = _by_a_multiple(difference) or _by_facts(difference)
        return known or self._by_a_dim(difference) or _by_a_function(difference)

    def _place(self, dim: Dim) -> int:
        return self._dims.get(dim.name, -1)

    def _by_a_dim(self, difference: Size) -> dict[Atom, Size]:
        """Replaces the last of the dims that can be solved for, preferring one whose solution is never negative."""
        known = sorted((dim for dim in dims_of(difference) if dim.name in self._dims), key=self._place)
        found = [solution for dim in known[::-1] if (solution := _first_solved(difference, [dim]))]
        sums = (each for each in found if all(is_at_most(0, size) for size in each.values()))
        return next(sums, found[0] if found else {})


def _is_fact(atom: Atom, size: Size) -> bool:
    """Whether a dim is substituted by a dim of the same name, that is by itself with other facts."""
    return isinstance(atom, Dim) and any(dim.name == atom.name for dim in atom_of(size, Dim))


def proof_of_most(a: Size, b: Size) -> Proof:
    """Whether `a <= b`, also in calls with empty tensors: a minimum of 1 is only a default."""
    guessed = [dim for size in (a, b) for dim in dims_of(size) if dim.min == 1]
    possible = {dim: as_size(Dim(dim.name, 0, dim.max, dim.multiple_of)) for dim in guessed}
    return prove_le(substitute(a, possible), substitute(b, possible))


def _without_implied(demands: Sequence[Demand]) -> Iterator[Demand]:
    """The demands without those on remainders of a dim that others imply, in their shortest form."""
    asked = [None if each.is_most else residues_where_0(_without_factors(each.left - each.right)) for each in demands]
    for number, (demand, mine) in enumerate(zip(demands, asked, strict=True)):
        if mine is None:
            yield demand if demand.is_most else replace(demand, said=_shorter(demand))
        elif mine.holds != (*mine.possible,) and not any(
            each is not None
            and each.dim.name == mine.dim.name
            and each.implies(mine)
            and (at < number or not mine.implies(each))
            for at, each in enumerate(asked)
            if at != number
        ):
            yield replace(demand, said=str(mine))


def _shorter(demand: Demand) -> str:
    """An equality without common factors, if that is shorter: `s == 1` for `4*n*s == 4*n`."""
    terms = terms_of(_without_factors(demand.left - demand.right))
    sides = [{each: sign * value for each, value in terms.items() if sign * value > 0} for sign in (1, -1)]
    said = " == ".join(str(of_terms(side)) for side in sides)
    return said if len(said) < len(str(demand)) and all(sides) else ""


def _with_numbers_left(a: Size, b: Size) -> tuple[Size, Size]:
    """`a <= b` as a bound on one size: `7 <= (h + 31)//32` becomes `193 <= h`."""
    rest, least = b - a, 0
    while not isinstance(rest, int):
        terms = dict(terms_of(rest))
        least -= terms.pop((), 0)
        step = gcd(*terms.values())
        least, terms = -(-least // step), {product: value // step for product, value in terms.items()}
        rest = of_terms(terms)
        quotient = atom_of(rest, Quotient)
        if not quotient or not isinstance(quotient[0].by, int) or quotient[0].by < 1:
            return (least, rest) if max(terms.values()) > 0 else (-rest, -least)
        rest, least = quotient[0].dividend, least * quotient[0].by
    return a, b


def _without_factors(difference: Size) -> Size:
    """The difference without numbers and positive atoms that are factors of all terms; it is 0 for the same values."""
    terms = terms_of(difference)
    common = gcd(*terms.values())
    first, *rest = terms
    for atom in first:
        if is_at_most(1, as_size(atom)) and all(atom in product for product in rest):
            terms = {_less(product, atom): value for product, value in terms.items()}
            rest = list(terms)[1:]
    return of_terms({product: value // common for product, value in terms.items()})


def _less(product: tuple[Atom, ...], atom: Atom) -> tuple[Atom, ...]:
    place = product.index(atom)
    return (*product[:place], *product[place + 1 :])


def _joined(first: Dim, second: Dim) -> dict[Atom, Size]:
    """For two dims: the later one becomes the earlier one, which takes over its facts."""
    most = min((each.max for each in (first, second) if each.max is not None), default=None)
    both = _dim(first.name, max(first.min, second.min), most, lcm(first.multiple_of, second.multiple_of))
    return {} if both is None else {each: as_size(both) for each in (first, second) if each != both}


def _by_a_multiple(difference: Size) -> dict[Atom, Size]:
    """The equality as a dim with a divisor, if they are equivalent: `n == 2*(n//2)`."""
    found = residues_where_0(difference)
    if found is None or not found.holds or (step := found.step) is None:
        return {}
    made = _dim(found.dim.name, found.dim.min, found.dim.max, lcm(found.dim.multiple_of, step))
    return {} if made in (None, found.dim) else {found.dim: made + 0}


def _by_facts(difference: Size) -> dict[Atom, Size]:
    """The equality as a dim with one more fact, if they are equivalent: `n == min(n, 512)`."""
    for dim in dims_of(difference):
        factor = terms_of(difference).get((dim,), 0)
        if abs(factor) == 1 and (found := _with_fact(dim, dim - factor * difference)) is not None:
            return {dim: as_size(found)}
    return {}


def _with_fact(dim: Dim, size: Size) -> Dim | None:
    """The dim with one more fact that makes it equal to this size; None if there is no such fact."""
    terms = terms_of(size)
    if len(terms) != 1:
        return None
    ((product, scale),) = terms.items()
    if len(product) != 1:
        return None
    atom = product[0]
    others = [each for each in atom.operands if each != dim]
    if scale == 1 and len(others) == 1 and len(atom.operands) == 2 and isinstance(others[0], int):
        if isinstance(atom, Minimum):
            return _dim(dim.name, dim.min, others[0], dim.multiple_of)
        if isinstance(atom, Maximum):
            return _dim(dim.name, others[0], dim.max, dim.multiple_of)
    return None


def _dim(name: str, least: int, most: int | None, multiple_of: int) -> Dim | None:
    """The dim with these facts; None if no integer satisfies them."""
    low = -(-least // multiple_of) * multiple_of
    return None if most is not None and most < low else Dim(name, least, most, multiple_of)


def _by_a_function(difference: Size) -> dict[Atom, Size]:
    """Solves for a quotient, a minimum or another function; the innermost ones are tried last."""
    atoms = [atom for atom in inside_out(difference) if isinstance(atom, Composite)]
    return _first_solved(difference, atoms[::-1])


def _first_solved(difference: Size, atoms: Iterable[Atom]) -> dict[Atom, Size]:
    for atom in atoms:
        found = _solved(difference, atom)
        if found is not None and prove_lt(found, 0) is not Proof.YES:
            return {atom: found}
    return {}


def _solved(difference: Size, atom: Atom) -> Size | None:
    """The value of `atom` for which the difference is 0, if it occurs once, with a factor that divides the rest."""
    terms = terms_of(difference)
    coefficient = terms.get((atom,), 0)
    rest = {product: value for product, value in terms.items() if product != (atom,)}
    if not coefficient or abs(coefficient) != gcd(*terms.values()) or atom in inside_out(of_terms(rest)):
        return None
    return of_terms({product: -value // coefficient for product, value in rest.items()})


def _limits(dim: Dim, size: Size) -> list[tuple[Size, Size, bool]]:
    """The bounds on the size that replaces a dim, from the dim's facts, as far as they are not proved."""
    if isinstance(size, int) or not atom_of(size, Dim):
        least = [(as_size(dim.min), size, True)] if dim.min > 1 else []
        most = [(size, as_size(dim.max), True)] if dim.max is not None else []
        step = [(size % dim.multiple_of, 0, False)] if dim.multiple_of > 1 else []
        return [each for each in (*least, *most, *step) if not _is_proved(*each)]
    return []


def _is_proved(left: Size, right: Size, is_most: bool) -> bool:
    return is_at_most(left, right) if is_most else is_equal(left, right)


def _is_refuted(left: Size, right: Size, is_most: bool) -> bool:
    return (prove_le if is_most else prove_eq)(left, right) is Proof.NO
