"""The touches of one buffer in a loop nest in, whether the nest writes all of it before it reads any out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tirlite.analysis.access import AccessKind, Region, Touch
from tirlite.analysis.exactness import stays_exact
from tirlite.analysis.index_space import IndexSpace
from tirlite.analysis.linear import Linear, Unknown
from tirlite.ir import GE, GT, LE, LT, And, Buffer, Expr, For, ForKind, IfThenElse, Load, Store, Var
from tirlite.record import record
from tirlite.sizes import Proof, Size, ceildiv, prove_eq, prove_le

# Stores of one nest that are tried, the first ones.
_MOST_STORES = 4


def overwrites(touches: Sequence[Touch], around: Region, buffer: Buffer, space: IndexSpace) -> bool:
    """Whether one statement of `around` surely writes each element of `buffer`, an allocation, and reads none before.

    `touches` are all touches of the allocation in that statement, in program order. One store must reach all elements
    by its own loops, under no condition but one that keeps its index in range; what is read, it must have written in
    the same iteration. All through `buffer` itself, not through views.
    """
    extents = [space.extents.size(extent) for extent in buffer.shape]
    if any(extent is None for extent in extents):
        return False
    shape = [extent for extent in extents if extent is not None]
    stores = [touch for touch in touches if touch.kind is AccessKind.WRITE]
    reads = [touch for touch in touches if touch.kind is not AccessKind.WRITE]
    for store in stores[:_MOST_STORES]:
        nest = _nest_of(store, around, buffer, space)
        if nest is not None and nest.covers(shape) and all(nest.has_written(read) for read in reads):
            return True
    return False


@record(eq=False)
class _Nest:
    """A store, the loops around it with how often each runs, the conditions around it, and its index."""

    store: Touch
    counts: dict[Unknown, Size]
    conditions: tuple[Expr, ...]
    indices: tuple[Linear, ...]
    lane: Unknown | None
    space: IndexSpace

    def covers(self, shape: Sequence[Size]) -> bool:
        """Whether the store reaches each index of `shape`."""
        used = [unknown for index in self.indices for unknown in index.terms]
        counted = {*self.counts, *([] if self.lane is None else [self.lane])}
        if len(set(used)) != len(used) or not counted.issuperset(used):
            return False
        idle = (count for unknown, count in self.counts.items() if unknown not in used)
        return (
            all(_at_most(1, count) for count in idle)
            and all(self._reaches(index, extent) for index, extent in zip(self.indices, shape, strict=True))
            and all(self._is_range_check(condition, shape) for condition in self.conditions)
        )

    def _reaches(self, index: Linear, extent: Size) -> bool:
        """Whether the index takes each value from 0 to `extent` - 1."""
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
        return (
            all(_at_most(0, coefficient) and _at_most(1, count) for coefficient, count in steps)
            and _at_most(first, 0)
            and _at_most(extent, first + length)
        )

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
        if read.position <= self.store.position or not _is_within(read.region, self.store.region):
            return False
        indices = _indices_of(read.node, self.space, self.lane)
        return (
            indices is not None
            and len(indices) == len(self.indices)
            and read.node.dtype == _store_of(self.store).value.dtype
            and all(a.same_as(b) for a, b in zip(indices, self.indices, strict=True))
        )


def _nest_of(store: Touch, around: Region, buffer: Buffer, space: IndexSpace) -> _Nest | None:
    """The nest that a store stands in, inside of `around`; None where its loops are not plain."""
    node = _store_of(store)
    if node.buffer is not buffer:
        return None
    counts: dict[Unknown, Size] = {}
    conditions: list[Expr] = []
    for region in _regions(store.region, around):
        composite = region.composite
        if isinstance(composite, For) and composite.kind is not ForKind.THREAD:
            count = _trip_count(composite, space)
            if count is None:
                return None
            counts[space.counter(composite)] = count
        elif isinstance(composite, IfThenElse) and region.then is None:
            conditions.append(composite.condition)
        else:
            return None
    lanes = node.indices[-1].dtype.lanes if node.indices else 1
    lane = Unknown("a lane", 0, lanes - 1, steady=False) if lanes > 1 else None
    indices = _indices_of(node, space, lane)
    return None if indices is None else _Nest(store, counts, tuple(conditions), indices, lane, space)


def _indices_of(node: Load | Store, space: IndexSpace, lane: Unknown | None) -> tuple[Linear, ...] | None:
    """The index along each axis; None where one may wrap around."""
    found = []
    for axis, index in enumerate(node.indices):
        linear = space.linear(index, lane)
        extent = space.extents.size(node.buffer.shape[axis])
        if not (isinstance(index, Var) or linear.is_constant or stays_exact(*linear.ends(), extent)):
            return None
        found.append(linear)
    return tuple(found)


def _trip_count(loop: For, space: IndexSpace) -> Size | None:
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


def _regions(region: Region, around: Region) -> Iterator[Region]:
    while region is not around:
        yield region
        assert region.parent is not None
        region = region.parent


def _is_within(region: Region | None, outer: Region) -> bool:
    while region is not None and region is not outer:
        region = region.parent
    return region is outer


def _store_of(touch: Touch) -> Store:
    assert isinstance(touch.node, Store)
    return touch.node


def _at_most(a: Size, b: Size) -> bool:
    return prove_le(a, b) is Proof.YES
