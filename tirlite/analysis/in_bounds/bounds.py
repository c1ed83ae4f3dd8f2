"""Proves that accesses lie in their buffers, or finds what must hold on entry for them to do so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from tirlite.analysis.in_bounds.guarded import Access, Around
from tirlite.analysis.integers.array_bounds import is_exact_size, stays_exact
from tirlite.analysis.integers.cells import ends_of_variable
from tirlite.analysis.integers.index_space import IndexSpace
from tirlite.diag import KernelError
from tirlite.ir import Buffer, Expr, Var, View
from tirlite.ir.expr import IntImm, Load
from tirlite.ir.stmt import Store
from tirlite.record import record, replace
from tirlite.sizes import Proof, Scalar, Size, dims_of, evaluate, is_at_most, substitute
from tirlite.sizes.extrema import each_of, halves_of
from tirlite.sizes.poly import Atom, terms_of, varies
from tirlite.sizes.unknown import ends, forms_of, is_nonnegative, narrowed, scales, unknowns_in

# This many facts about a place, one on top of another, go into a proof.
_STEPS = 2
# No more of them are looked at, of the sums that come of it in one step, of all sums of a function, and of terms.
_MOST_FACTS, _MOST_FORMS, _MOST_FORMS_IN_ALL, _MOST_TERMS = 12, 8, 4000, 16

# This many values that conditions pick are told apart, one inside of another.
_MOST_CHOICES = 3


@record(eq=False)
class Goal:
    """What must be 0 or more for an access to lie in bounds along one axis; of a view, for all of it to do so.

    None where it is no size: where the arithmetic may wrap around, or an extent is not known.
    """

    axis: int
    sizes: tuple[Size, ...] | None


class Bounds:
    """The indices of one function, each proof tried once."""

    def __init__(self, space: IndexSpace) -> None:
        self.space = space
        self._proofs: dict[tuple[Expr, Expr], Proof] = {}
        self._known: dict[Around, tuple[dict[Atom, Size], list[Size]]] = {}
        self._sides: dict[tuple[Around, Atom, bool], Around] = {}
        self._lows: dict[Size, Size | None] = {}
        self._between: dict[tuple[Size, Size, Size], Proof] = {}

    def proof(self, index: Expr, extent: Expr) -> Proof:
        """YES: in bounds for all values, of a vector all lanes. NO: out of bounds for all. UNKNOWN: neither is seen.

        What a test around an access says of its indices does not count.
        """
        if type(index) is IntImm and type(extent) is IntImm and 0 <= index.value < extent.value:
            return Proof.YES
        key = (index, extent)
        if key not in self._proofs:
            self._proofs[key] = self._proved(index, extent)
        return self._proofs[key]

    def is_inside(self, access: Load | Store) -> bool:
        """Whether an access lies in its buffer in every iteration of the loops around, whatever branches ask for."""
        pairs = zip(access.indices, access.buffer.shape, strict=True)
        return all(self.proof(index, extent) is Proof.YES for index, extent in pairs)

    def open_goals(self, access: Access) -> Iterator[Goal]:
        """What is not proved of an access, with all that is known where it stands."""
        for goal in self._goals(access):
            if goal.sizes is None or not all(self._is_certain(size, access.around) for size in goal.sizes):
                yield goal

    def open_axes(self, access: Access) -> Iterator[int]:
        """The axes along which an access is not proved, by itself; 0 of a view that an author declares."""
        for goal in self._goals(access):
            yield goal.axis

    def is_half_tested(self, goal: Goal, access: Access) -> bool:
        """Whether the tests around an access keep it in bounds at one end of an axis, which is not so without them.

        Then a call in which it is out of bounds at the other end hardly ever is one that does not come to it.
        """
        for size in goal.sizes or ():
            low = self._low(size)
            if (low is None or not is_nonnegative(low)) and self._is_certain(size, access.around):
                return True
        return False

    def behind(self, access: Access) -> list[Size]:
        """All ends that a proof about an access, or its demands, may depend on."""
        node, known = access.node, [*access.around.known]
        exprs = [node.byte_offset, *node.source.shape] if isinstance(node, View) else [*node.indices]
        exprs += [*node.buffer.shape, *(end for loop in access.around.loops for end in (loop.start, loop.stop))]
        todo = [*known, *map(self.space.size, exprs)]
        met: dict[Size, None] = {}
        while todo:
            size = todo.pop()
            if size in met:
                continue
            met[size] = None
            for unknown in unknowns_in(size):
                todo += [end for end in (unknown.low, unknown.high) if end is not None]
                if unknown in self.space.choices:
                    choice = self.space.choices[unknown]
                    todo += [choice.yes, choice.no]
                    todo += [fact for holds in (True, False) for fact in self.space.told(choice, holds=holds)]
        return [*met]

    def demands(self, goal: Goal, access: Access) -> tuple[Size, ...] | None:
        """Sizes without unknowns that make a goal true where all are 0 or more; None where none are found."""
        if goal.sizes is None:
            return None
        found: list[Size] = []
        for size in goal.sizes:
            demanded = self._demanded(size, access.around)
            if demanded is None:
                return None
            found += demanded
        return tuple(found)

    def _demanded(self, size: Size, around: Around, choices: int = _MOST_CHOICES) -> list[Size] | None:
        """The same for one size; of a value that a condition picks, what is demanded of either."""
        if self._is_certain(size, around):
            return []
        found: list[Size] = []
        sides = self._sides_of(size, around) if choices else None
        for part, side in sides or ():
            demanded = self._demanded(part, side, choices - 1)
            if demanded is None:
                break
            found += demanded
        else:
            if sides is not None:
                return found
        low = _greatest(self._low(form) for form in _forms(size, around.known[-_MOST_FACTS:], 1))
        return None if low is None else [each for each in each_of(low) if not is_nonnegative(each)]

    def _is_certain(self, size: Size, around: Around, choices: int = _MOST_CHOICES) -> bool:
        """Whether a size is 0 or more at a place, whichever values conditions pick."""
        if self._holds(size, around):
            return True
        parts = each_of(size)
        if parts != [size]:
            return all(self._is_certain(each, around, choices) for each in parts)
        if any(self._holds(each, around) for each in halves_of(size)):
            return True
        sides = self._sides_of(size, around) if choices else None
        return sides is not None and all(self._is_certain(part, side, choices - 1) for part, side in sides)

    def _sides_of(self, size: Size, around: Around) -> list[tuple[Size, Around]] | None:
        """A size for each of two values that a condition picks one of, with what is known then; None where none is."""
        chosen = next((each for each in unknowns_in(size) if each in self.space.choices), None)
        if chosen is None:
            return None
        found: list[tuple[Size, Around]] = []
        choice = self.space.choices[chosen]
        for value, holds in ((choice.yes, True), (choice.no, False)):
            side = self._side(around, chosen, holds)
            # What lies between numbers of 64 bits, by the facts here, has not wrapped around.
            if not self.space.is_exact(value) and not (self._is_above(value, side) and self._is_above(-value, side)):
                return None
            found.append((substitute(size, {chosen: value}), side))
        return found

    def _is_above(self, size: Size, around: Around) -> bool:
        """Whether a size is at least some 64-bit number at a place."""
        lows = map(self._low, _forms(size, around.known[-_MOST_FACTS:], _STEPS))
        return any(low is not None and is_exact_size(low, self.space.extents.arrays) for low in lows)

    def _side(self, around: Around, chosen: Atom, holds: bool) -> Around:
        """The place with the condition of a choice known to hold, or not to hold."""
        key = (around, chosen, holds)
        if key not in self._sides:
            told = self.space.told(self.space.choices[chosen], holds=holds)
            self._sides[key] = replace(around, known=(*around.known, *told))
        return self._sides[key]

    def _holds(self, size: Size, around: Around) -> bool:
        """Whether a size is at least 0 at a place: as it is no less than multiples of a few facts about it."""
        if (low := self._low(size)) is not None and is_nonnegative(low):
            return True
        if around not in self._known:
            self._known[around] = narrowed(around.known[-_MOST_FACTS:])
        changes, facts = self._known[around]
        forms = _forms(substitute(size, changes) if changes else size, facts, _STEPS)
        return any((low := self._low(form)) is not None and is_nonnegative(low) for form in forms)

    def _low(self, size: Size) -> Size | None:
        """A size without unknowns that `size` never falls below; None where none is found, or too much was asked."""
        if size not in self._lows:
            is_too_much = len(self._lows) > _MOST_FORMS_IN_ALL or len(terms_of(size)) > _MOST_TERMS
            low = None if is_too_much else ends(size)[0]
            self._lows[size] = None if low is None or varies(low) else low
        return self._lows[size]

    def _proved(self, index: Expr, extent: Expr) -> Proof:
        size = self.space.extents.size(extent)
        definition = self.space.definitions.of(index) if isinstance(index, Var) else None
        if definition is not None and definition.loop is not None:
            low, high = ends_of_variable(definition.loop, self.space)
        else:
            low, high = ends(self.space.size(index, self.space.lane(index.dtype.lanes)))
        if size is None or low is None or high is None:
            return Proof.UNKNOWN
        between = (low, high, size)
        if between not in self._between:
            self._between[between] = _between(*between) if stays_exact(*between) else Proof.UNKNOWN
        return self._between[between]

    def _goals(self, access: Access) -> Iterator[Goal]:
        node = access.node
        if isinstance(node, View):
            yield self._of_view(node)
            return
        for axis, (index, extent) in enumerate(zip(node.indices, node.buffer.shape, strict=True)):
            if self.proof(index, extent) is not Proof.YES:
                yield Goal(axis, self._of_index(index, extent))

    def _of_index(self, index: Expr, extent: Expr) -> tuple[Size, ...] | None:
        value = self.space.size(index, self.space.lane(index.dtype.lanes))
        size = self._extent(extent)
        exact = self.space.is_exact(value) or (size is not None and stays_exact(*ends(value), size))
        return (value, size - 1 - value) if size is not None and exact else None

    def _of_view(self, view: View) -> Goal:
        offset = self.space.size(view.byte_offset)
        own, whole = self._bytes(view.buffer), self._bytes(view.source)
        if own is None or whole is None or not (self.space.is_exact(offset) or stays_exact(*ends(offset), whole[1])):
            return Goal(0, None)
        extents = [each for each in own[0] if not isinstance(each, int) or each < 0]
        return Goal(0, (offset, whole[1] - offset - own[1], *extents))

    def _extent(self, extent: Expr) -> Size | None:
        known = self.space.extents.size(extent)
        if known is not None:
            return known
        size = self.space.size(extent)
        return size if self.space.is_exact(size) else None

    def _bytes(self, buffer: Buffer) -> tuple[list[Size], Size] | None:
        """The extents of a buffer and its bytes."""
        extents = [self._extent(extent) for extent in buffer.shape]
        known = [each for each in extents if each is not None]
        return None if len(known) < len(extents) else (known, prod(known, start=buffer.dtype.bytes))


def _between(low: Size, high: Size, extent: Size) -> Proof:
    if is_at_most(0, low) and is_at_most(high + 1, extent):
        return Proof.YES
    is_outside = is_at_most(high + 1, 0) or is_at_most(extent, low)
    return Proof.NO if is_outside else Proof.UNKNOWN


def _forms(size: Size, facts: Sequence[Size], steps: int) -> Iterator[Size]:
    """Sums that `size` is equal to, or no less than: multiples of facts are taken away, so that less terms are left."""
    forms = forms_of(size)
    met = {*forms}
    for step in range(1 + steps):
        yield from forms
        if step < steps:
            rests = dict.fromkeys(form - scale * f for form in forms for f in facts for scale in scales(form, f))
            shortest = sorted((rest for rest in rests if rest not in met), key=lambda rest: len(terms_of(rest)))
            forms = [form for rest in shortest[:_MOST_FORMS] for form in forms_of(rest)][:_MOST_FORMS]
            met.update(forms)


def _greatest(sizes: Iterator[Size | None]) -> Size | None:
    """A size that none of the others is proved to exceed; a likely one where nothing is proved."""
    best: Size | None = None
    for size in sizes:
        if size is None or size == best:
            continue
        if (
            best is None
            or is_nonnegative(size - best)
            or (_promise(size) > _promise(best) and not is_nonnegative(best - size))
        ):
            best = size
    return best


def _promise(size: Size) -> tuple[int, int]:
    """How great a size is where arrays are large and all alike, and numbers small; of equals, the shorter is more."""
    values = {dim: min(max(dim.low, 2), 2 if dim.high is None else dim.high) for dim in dims_of(size)}
    values |= {dim: dim.nth(1000) for dim in values if not isinstance(dim, Scalar)}
    try:
        return evaluate(size, values), -_weight(size)
    except KernelError:
        return -1, -_weight(size)


def _weight(size: Size) -> int:
    return sum(map(abs, terms_of(size).values()))
