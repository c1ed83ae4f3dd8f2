"""The touches of one buffer in a loop nest in, whether the nest writes all of it before it reads any out."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.analysis.access import Region, Touch
from tirlite.analysis.exactness import stays_exact
from tirlite.analysis.index_space import IndexSpace
from tirlite.analysis.linear import Linear, Unknown
from tirlite.analysis.regions import is_within, regions_between
from tirlite.ir import GE, GT, LE, LT, And, Buffer, Expr, For, ForKind, IfThenElse, Load, Store, Var
from tirlite.record import record
from tirlite.sizes import Proof, Size, ceildiv, prove_eq, prove_le

# Stores of one nest that are tried, the first ones.
_MOST_STORES = 4
# Statements that are looked at together.
MOST_TOGETHER = 4


def count_that_overwrite(groups: Sequence[Sequence[Touch]], around: Region, buffer: Buffer, space: IndexSpace) -> int:
    """How many of the first statements together surely write each element of `buffer`, and read none before; else 0.

    `groups` are the touches of each statement of `around`. Of several statements each has one store, and reads nothing;
    the parts that they write lie side by side along one axis.
    """
    if overwrites(groups[0], around, buffer, space):
        return 1
    shape = _shape(buffer, space)
    whole: _Part | None = None
    for number, touches in enumerate(groups[:MOST_TOGETHER]):
        if shape is None or len(touches) != 1 or not _is_store(touches[0]):
            return 0
        nest = _nest_of(touches[0], touches, around, buffer, space)
        part = None if nest is None else nest.part(shape)
        whole = part if whole is None or part is None else whole.joined(part)
        if whole is None:
            return 0
        if _at_most(whole.low, 0) and _at_most(shape[whole.axis], whole.high):
            return number + 1
    return 0


def overwrites(touches: Sequence[Touch], around: Region, buffer: Buffer, space: IndexSpace) -> bool:
    """Whether one statement of `around` surely writes each element of `buffer`, an allocation, and reads none before.

    `touches` are all touches of the allocation in that statement, in program order. One store must reach all elements
    by its own loops, under no condition but one that keeps its index in range, or that another store at the same index
    has in its `else`; what is read, it must have written in the same iteration. All through `buffer` itself, not
    through views.
    """
    shape = _shape(buffer, space)
    if shape is None:
        return False
    stores = [touch for touch in touches if _is_store(touch)]
    others = [touch for touch in touches if not _is_store(touch)]
    for store in stores[:_MOST_STORES]:
        nest = _nest_of(store, touches, around, buffer, space)
        if nest is not None and nest.covers(shape) and all(nest.has_written(other) for other in others):
            return True
    return False


def _shape(buffer: Buffer, space: IndexSpace) -> list[Size] | None:
    """The extents of a buffer, if all of them are known on entry."""
    extents = [space.extents.size(extent) for extent in buffer.shape]
    known = [extent for extent in extents if extent is not None]
    return known if len(known) == len(extents) else None


@record
class _Part:
    """The elements from `low` and before `high` along one axis, all of them along the others."""

    axis: int
    low: Size
    high: Size

    def joined(self, other: _Part) -> _Part | None:
        """The part that two with no gap in between are together, if they are known to be such."""
        if self.axis != other.axis:
            return None
        for a, b in ((self, other), (other, self)):
            if _at_most(a.low, b.low) and _at_most(b.low, a.high):
                return _Part(a.axis, a.low, a.high if _at_most(b.high, a.high) else b.high)
        return None


@record(eq=False)
class _Nest:
    """A store, the loops around it with how often each runs, the conditions around it, and its index.

    In each iteration the element is written in `region`, at the position `done` or before.
    """

    store: Touch
    region: Region
    done: int
    counts: dict[Unknown, Size]
    conditions: tuple[Expr, ...]
    indices: tuple[Linear, ...]
    lane: Unknown | None
    space: IndexSpace

    def covers(self, shape: Sequence[Size]) -> bool:
        """Whether the store reaches each index of `shape`."""
        return (
            self._runs_apart()
            and all(_holds_all(self._range(index), extent) for index, extent in zip(self.indices, shape, strict=True))
            and all(self._is_range_check(condition, shape) for condition in self.conditions)
        )

    def part(self, shape: Sequence[Size]) -> _Part | None:
        """What the store reaches, where that is all of `shape` but for one axis at most."""
        if self.conditions or not self._runs_apart():
            return None
        ranges = [self._range(index) for index in self.indices]
        narrow = [axis for axis, each in enumerate(ranges) if not _holds_all(each, shape[axis])]
        if len(narrow) != 1:
            return None
        found = ranges[narrow[0]]
        return None if found is None else _Part(narrow[0], *found)

    def _runs_apart(self) -> bool:
        """Whether each loop moves along one axis alone, or runs once at least and moves along none."""
        used = [unknown for index in self.indices for unknown in index.terms]
        counted = {*self.counts, *([] if self.lane is None else [self.lane])}
        if len(set(used)) != len(used) or not counted.issuperset(used):
            return False
        return all(_at_most(1, count) for unknown, count in self.counts.items() if unknown not in used)

    def _range(self, index: Linear) -> tuple[Size, Size] | None:
        """Between which ends the index takes each value, if there are such."""
        first = index.constant
        steps: list[tuple[Size, Size]] = []
        for unknown, coefficient in index.terms.items():
            count = self._count(unknown)
            if isinstance(coefficient, int) and coefficient < 0:
                first, coefficient = first + coefficient * (count - 1), -coefficient
            steps.append((coefficient, count))
        length: Size = 1  # so many values in a row are reached
        while steps:
            fitting = next((pair for pair in steps if _continues(*pair, length)), None)
            if fitting is None:
                break
            steps.remove(fitting)
            length = fitting[0] * (fitting[1] - 1) + length
        # What is left over stands still at its first iteration, and must have one.
        if not all(_at_most(0, coefficient) and _at_most(1, count) for coefficient, count in steps):
            return None
        return first, first + length

    def _count(self, unknown: Unknown) -> Size:
        if unknown is self.lane:
            assert isinstance(unknown.high, int)
            return unknown.high + 1
        return self.counts[unknown]

    def _is_range_check(self, condition: Expr, shape: Sequence[Size]) -> bool:
        """Whether a condition holds wherever the index lies inside of `shape`."""
        todo = [condition]
        while todo:
            each = todo.pop()
            if isinstance(each, And):
                todo += (each.a, each.b)
            elif isinstance(each, LT | LE | GT | GE) and each.a.dtype.is_integer and each.a.dtype.bits == 64:
                a, b = self.space.linear(each.a), self.space.linear(each.b)
                less, more = (a, b) if isinstance(each, LT | LE) else (b, a)
                # On integers `less < more` is `less + 1 <= more`.
                gap = 1 if isinstance(each, LT | GT) else 0
                if not any(self._holds(less, more, gap, i, e) for i, e in zip(self.indices, shape, strict=True)):
                    return False
            else:
                return False
        return True

    def _holds(self, less: Linear, more: Linear, gap: int, index: Linear, extent: Size) -> bool:
        """Whether `less + gap <= more` follows from `0 <= index < extent`, one of the two being the index."""
        if less.same_as(index) and more.is_constant:
            return _at_most(extent - 1 + gap, more.constant)
        return more.same_as(index) and less.is_constant and _at_most(less.constant + gap, 0)

    def has_written(self, read: Touch) -> bool:
        """Whether a read gets what the store wrote in the same iteration of all of its loops."""
        if not isinstance(read.node, Load) or read.node.buffer is not _store_of(self.store).buffer:
            return False
        if read.position <= self.done or not is_within(read.region, self.region):
            return False
        indices = indices_of(read.node, self.space, self.lane)
        return (
            indices is not None
            and read.node.dtype == _store_of(self.store).value.dtype
            and _same(indices, self.indices)
        )


def _holds_all(found: tuple[Size, Size] | None, extent: Size) -> bool:
    """Whether a range holds all from 0 to `extent` - 1."""
    return found is not None and _at_most(found[0], 0) and _at_most(extent, found[1])


def _same(one: Sequence[Linear], other: Sequence[Linear]) -> bool:
    return len(one) == len(other) and all(a.same_as(b) for a, b in zip(one, other, strict=True))


def _nest_of(store: Touch, touches: Sequence[Touch], around: Region, buffer: Buffer, space: IndexSpace) -> _Nest | None:
    """The nest that a store stands in, inside of `around`; None where its loops are not plain."""
    node = _store_of(store)
    if node.buffer is not buffer:
        return None
    lanes = node.indices[-1].dtype.lanes if node.indices else 1
    lane = Unknown("a lane", 0, lanes - 1, steady=False) if lanes > 1 else None
    indices = indices_of(node, space, lane)
    if indices is None:
        return None
    where, done = store.region, store.position
    other = None if lane is not None else in_the_other_branch(store, touches, indices, around, space)
    if other is not None:
        assert where.parent is not None
        where, done = where.parent, max(done, other.position)
    counts: dict[Unknown, Size] = {}
    conditions: list[Expr] = []
    for region in regions_between(where, around):
        composite = region.composite
        if isinstance(composite, For) and composite.kind is not ForKind.THREAD:
            count = trip_count(composite, space)
            if count is None:
                return None
            counts[space.counter(composite)] = count
        elif isinstance(composite, IfThenElse) and region.then is None:
            conditions.append(composite.condition)
        else:
            return None
    return _Nest(store, where, done, counts, tuple(conditions), indices, lane, space)


def in_the_other_branch(
    store: Touch, touches: Sequence[Touch], indices: Sequence[Linear], around: Region, space: IndexSpace
) -> Touch | None:
    """The store to the same element that is made where a condition keeps this one from being made."""
    region = store.region
    if region is around or not isinstance(region.composite, IfThenElse):
        return None
    for other in touches:
        if not _is_store(other) or _store_of(other).buffer is not _store_of(store).buffer:
            continue
        if other.region.then is region or region.then is other.region:
            found = indices_of(_store_of(other), space, None)
            alike = _store_of(other).indices[-1:] == () or _store_of(other).indices[-1].dtype.lanes == 1
            if alike and found is not None and _same(found, indices):
                return other
    return None


def indices_of(node: Load | Store, space: IndexSpace, lane: Unknown | None) -> tuple[Linear, ...] | None:
    """The index along each axis; None where one may wrap around."""
    found = []
    for axis, index in enumerate(node.indices):
        linear = space.linear(index, lane)
        extent = space.extents.size(node.buffer.shape[axis])
        if not (isinstance(index, Var) or linear.is_constant or stays_exact(*linear.ends(), extent)):
            return None
        found.append(linear)
    return tuple(found)


def trip_count(loop: For, space: IndexSpace) -> Size | None:
    """How often a loop runs, or a number below 1; None where its bounds are not known on entry to the function."""
    start, stop = space.linear(loop.start), space.linear(loop.stop)
    if not (start.is_constant and stop.is_constant):
        return None
    length = stop.constant - start.constant if loop.step > 0 else start.constant - stop.constant
    return ceildiv(length, abs(loop.step))


def _continues(coefficient: Size, count: Size, length: Size) -> bool:
    """Whether `length` values in a row, moved on by `coefficient` each time, make one longer row."""
    if prove_eq(coefficient, length) is Proof.YES:
        return True
    return _at_most(0, coefficient) and _at_most(coefficient, length) and _at_most(1, count)


def _is_store(touch: Touch) -> bool:
    return isinstance(touch.node, Store)


def _store_of(touch: Touch) -> Store:
    assert isinstance(touch.node, Store)
    return touch.node


def _at_most(a: Size, b: Size) -> bool:
    return prove_le(a, b) is Proof.YES
