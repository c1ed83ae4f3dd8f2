"""Finds the elements of its buffer that a store surely reaches, from the loops and conditions around it."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.analysis.access import Region, Touch
from tirlite.analysis.integers.index_space import FLIPPED, IndexSpace
from tirlite.analysis.regions import is_within, regions_between
from tirlite.ir import LT, Buffer, Compare, Expr, For, ForKind, IfThenElse, Load, Min, Store, conjuncts
from tirlite.ir.checked import mask_of
from tirlite.record import record
from tirlite.sizes import Proof, Size, ceildiv, is_at_most, maximum, minimum, prove_eq
from tirlite.sizes.poly import Atom, varies
from tirlite.sizes.unknown import Unknown, linear, terms_in


@record
class Stretch:
    """`length` elements from `first` on along one axis; with a stride `count` times this many, a stride apart each.

    None where the length or the count is not above 0.
    """

    first: Size
    length: Size
    stride: int = 0
    count: Size = 1


@record(eq=False)
class StoreNest:
    """A store, the loops around it with how often each runs, the conditions around it, and its index.

    In each iteration the element is written in `region`, at the position `done` or before.
    """

    store: Touch
    region: Region
    done: int
    counts: dict[Atom, Size]
    conditions: tuple[Expr, ...]
    indices: tuple[Size, ...]
    lane: Unknown | None
    space: IndexSpace

    def reached(self, shape: Sequence[Size]) -> dict[int, Stretch] | None:
        """What the store reaches of `shape`: by axis, where it is not all along it; None where that is no such thing.

        There is one such axis at most.
        """
        if not self._runs_apart():
            return None
        cut = self._cut(shape)
        if cut is None:
            return None
        narrow: dict[int, Stretch] = {}
        for axis, index in enumerate(self.indices):
            lows, highs = cut[axis]
            found = self._stretch(index)
            if found is not None and not found.stride:
                # Where the loops reach beyond both ends, the conditions alone say what is written.
                high = found.first + found.length
                lows = lows if is_at_most(found.first, 0) else [*lows, found.first]
                highs = highs if is_at_most(shape[axis], high) else [*highs, high]
                low, high = maximum(*lows) if lows else 0, minimum(*highs) if highs else shape[axis]
                found = Stretch(low, high - low)
            elif lows or highs:
                return None
            if found is None:
                return None
            if found.stride or lows or highs:
                narrow[axis] = found
        return narrow if len(narrow) < 2 else None

    def has_written(self, read: Touch) -> bool:
        """Whether a read gets what the store wrote in the same iteration of all of its loops."""
        if not isinstance(read.node, Load) or read.node.buffer is not _store_of(self.store).buffer:
            return False
        if read.position <= self.done or not is_within(read.region, self.region):
            return False
        indices = indices_of(read.node, self.space, self.lane)
        return indices is not None and read.node.dtype == _store_of(self.store).value.dtype and indices == self.indices

    def _runs_apart(self) -> bool:
        """Whether each loop moves along one axis alone, or runs once at least and moves along none."""
        used = [atom for index in self.indices for atom in terms_in(index)]
        counted: set[Atom] = {*self.counts, *([] if self.lane is None else [self.lane])}
        if len(set(used)) != len(used) or not counted.issuperset(used):
            return False
        return all(is_at_most(1, count) for counter, count in self.counts.items() if counter not in used)

    def _stretch(self, index: Size) -> Stretch | None:
        """Which values the index takes, if they are known to be such."""
        parts = linear(index)
        if parts is None:
            return None
        first = parts.constant
        steps: list[tuple[Size, Size]] = []
        for atom, coefficient in parts.terms.items():
            count = self._count(atom)
            if isinstance(coefficient, int) and coefficient < 0:
                first, coefficient = first + coefficient * (count - 1), -coefficient
            steps.append((coefficient, count))
        length: Size = 1  # this many values in a row are reached
        while steps:
            fitting = next((pair for pair in steps if _continues(*pair, length)), None)
            if fitting is None:
                break
            steps.remove(fitting)
            length = fitting[0] * (fitting[1] - 1) + length
        if len(steps) == 1 and isinstance(length, int) and length > 0:
            ((stride, count),) = steps
            if isinstance(stride, int) and stride > length:
                return Stretch(first, length, stride, count)
        # What is left over stands still at its first iteration, and must have one.
        if not all(is_at_most(0, coefficient) and is_at_most(1, count) for coefficient, count in steps):
            return None
        return Stretch(first, length)

    def _count(self, atom: Atom) -> Size:
        if self.lane is not None and atom is self.lane:
            assert isinstance(self.lane.high, int)
            return self.lane.high + 1
        return self.counts[atom]

    def _cut(self, shape: Sequence[Size]) -> list[tuple[list[Size], list[Size]]] | None:
        """From where on and before where along each axis the conditions hold, but for what lies outside of `shape`.

        None where they ask for something else.
        """
        found: list[tuple[list[Size], list[Size]]] = [([], []) for _ in shape]
        for each in (part for condition in self.conditions for part in conjuncts(condition)):
            surplus = self.space.surplus(each, self.indices)
            if surplus is None:
                return None
            for axis, index in enumerate(self.indices):
                end, begin = surplus + index + 1, index - surplus
                if not varies(end):
                    if not is_at_most(shape[axis], end):
                        found[axis][1].append(end)
                    break
                if not varies(begin):
                    if not is_at_most(begin, 0):
                        found[axis][0].append(begin)
                    break
            else:
                if varies(surplus) or not is_at_most(0, surplus):
                    return None
        return found


def nest_of(
    store: Touch, touches: Sequence[Touch], around: Region, buffer: Buffer, space: IndexSpace
) -> StoreNest | None:
    """The nest that a store stands in, inside of `around`; None where its loops are not plain, or it is to a view.

    None, too, where a mask leaves lanes out.

    `touches` are those of the buffer in the same statement of `around`.
    """
    node = _store_of(store)
    if node.buffer is not buffer or mask_of(node.indices) is not None:
        return None
    lanes = node.indices[-1].dtype.lanes if node.indices else 1
    lane = space.lane(lanes)
    indices = indices_of(node, space, lane)
    if indices is None:
        return None
    where, done = store.region, store.position
    other = None if lane is not None else in_the_other_branch(store, touches, indices, around, space)
    if other is not None:
        assert where.parent is not None
        where, done = where.parent, max(done, other.position)
    counts: dict[Atom, Size] = {}
    conditions: list[Expr] = []
    for region in regions_between(where, around):
        composite = region.composite
        if isinstance(composite, For) and composite.kind is not ForKind.THREAD:
            found = _iterations(composite, space)
            if found is None:
                return None
            counts[space.counter(composite)], limits = found
            conditions += limits
        elif isinstance(composite, IfThenElse):
            condition = composite.condition
            if region.then is not None:
                if not isinstance(condition, Compare):
                    return None
                condition = FLIPPED[type(condition)](condition.a, condition.b)
            conditions.append(condition)
        else:
            return None
    return StoreNest(store, where, done, counts, tuple(conditions), indices, lane, space)


def in_the_other_branch(
    store: Touch, touches: Sequence[Touch], indices: tuple[Size, ...], around: Region, space: IndexSpace
) -> Touch | None:
    """The store to the same element that is made where a condition keeps this one from being made."""
    region = store.region
    if region is around or not isinstance(region.composite, IfThenElse):
        return None
    for other in touches:
        if not isinstance(other.node, Store) or other.node.buffer is not _store_of(store).buffer:
            continue
        if other.region.then is region or region.then is other.region:
            found = indices_of(other.node, space, None)
            alike = other.node.indices[-1:] == () or other.node.indices[-1].dtype.lanes == 1
            if alike and found == indices:
                return other
    return None


def indices_of(node: Load | Store, space: IndexSpace, lane: Unknown | None) -> tuple[Size, ...] | None:
    """The index along each axis; None where one may wrap around."""
    found = []
    for axis, index in enumerate(node.indices):
        size = space.size(index, lane)
        extent = space.extents.size(node.buffer.shape[axis])
        if not space.is_exact_at(index, size, extent):
            return None
        found.append(size)
    return tuple(found)


def trip_count(loop: For, space: IndexSpace) -> Size | None:
    """How often a loop runs, or a number below 1; None where its bounds are not known on entry to the function."""
    start, stop = space.size(loop.start), space.size(loop.stop)
    if varies(start) or varies(stop) or not (space.is_exact(start) and space.is_exact(stop)):
        return None
    return ceildiv(loop.distance(start, stop), abs(loop.step))


def _iterations(loop: For, space: IndexSpace) -> tuple[Size, list[Expr]] | None:
    """How often a loop runs, but for iterations in which a condition does not hold; None where that is not known."""
    count = trip_count(loop, space)
    if count is not None:
        return count, []
    start = space.size(loop.start)
    if loop.step != 1 or not space.is_exact(start):
        return None
    counts: list[Size] = []
    limits: list[Expr] = []
    for operand in space.operands(loop.stop, Min):
        stop = space.size(operand)
        length = stop - start
        if not varies(length) and space.is_exact(stop):
            counts.append(length)
        else:
            limits.append(LT(loop.var, operand))
    return (minimum(*counts), limits) if counts else None


def _continues(coefficient: Size, count: Size, length: Size) -> bool:
    """Whether `length` values in a row, moved on by `coefficient` each time, make one longer row."""
    if prove_eq(coefficient, length) is Proof.YES:
        return is_at_most(0, length)
    return is_at_most(0, coefficient) and is_at_most(coefficient, length) and is_at_most(1, count)


def _store_of(touch: Touch) -> Store:
    assert isinstance(touch.node, Store)
    return touch.node
