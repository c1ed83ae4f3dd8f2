"""Finds the statements that overwrite all of a buffer before they read it, from its touches by each statement.

A call does so if the callee writes all of a parameter before it reads any of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter

from tirlite.analysis.access import AccessKind, Allocation, Region, Touch
from tirlite.analysis.coverage.store_nest import StoreNest, Stretch, nest_of, trip_count
from tirlite.analysis.facts import Facts
from tirlite.analysis.in_bounds.call_demands import may_be_empty
from tirlite.analysis.integers.index_space import IndexSpace
from tirlite.analysis.regions import by_statement, is_within, regions_between
from tirlite.ir import Buffer, For, ForKind, Function, KernelCall, Store
from tirlite.ir.kernel_call import closure_of
from tirlite.record import record
from tirlite.sizes import Size, is_at_most, maximum, minimum

# Stores of one statement that are tried, the first ones.
_MOST_STORES = 8
# Statements that are looked at together.
MOST_TOGETHER = 5


def count_that_overwrite(groups: Sequence[Sequence[Touch]], around: Region, buffer: Buffer, space: IndexSpace) -> int:
    """How many of the first statements together surely write each element of `buffer`, and read none before; else 0.

    `groups` are the touches of each statement of `around`, in program order. Each store is taken for what it reaches by
    its own loops, and under its own conditions: all of the buffer, or all but for one axis, and along that one a
    stretch, or blocks at equal distances. Together these must leave no gap. What is read, a store must have written in
    the same iteration. All through `buffer` itself, not through views.
    """
    shape = _shape(buffer, space)
    if shape is None:
        return 0
    cover = _Cover(shape)
    for number, touches in enumerate(groups[:MOST_TOGETHER]):
        if not isinstance(touches[0].node, Store):  # no store has written what comes before all of them
            return 0
        stores = [touch for touch in touches if isinstance(touch.node, Store)]
        others = [touch for touch in touches if not isinstance(touch.node, Store)]
        found = (nest_of(store, touches, around, buffer, space) for store in stores[:_MOST_STORES])
        nests = [nest for nest in found if nest is not None]
        if not nests or not all(any(nest.has_written(other) for nest in nests) for other in others):
            return 0
        for nest in nests:
            cover.add(nest)
        if cover.is_whole():
            return number + 1
    return 0


def _shape(buffer: Buffer, space: IndexSpace) -> list[Size] | None:
    """The extents of a buffer, if all of them are known on entry."""
    extents = [space.extents.size(extent) for extent in buffer.shape]
    known = [extent for extent in extents if extent is not None]
    return known if len(known) == len(extents) else None


@record
class _Slab:
    """The elements from `low` and before `high` along one axis, all of them along the others; none where they cross."""

    axis: int
    low: Size
    high: Size

    def joined(self, other: _Slab) -> _Slab | None:
        """One slab of the elements of both, where each is known to begin no later than the other one ends.

        Where one is empty, its begin does not come before its end, and so before the begin of the other.
        """
        if self.axis != other.axis or not (is_at_most(other.low, self.high) and is_at_most(self.low, other.high)):
            return None
        return _Slab(self.axis, minimum(self.low, other.low), maximum(self.high, other.high))


def _slab(axis: int, low: Size, high: Size) -> _Slab:
    """The slab between two ends; there are no elements below 0."""
    return _Slab(axis, *(end if is_at_most(0, end) else maximum(0, end) for end in (low, high)))


class _Cover:
    """What some stores have written of a buffer of this shape."""

    def __init__(self, shape: Sequence[Size]) -> None:
        self.shape = shape
        self.all = False
        self.slabs: list[_Slab] = []
        self.blocks: list[tuple[int, Stretch]] = []

    def add(self, nest: StoreNest) -> None:
        reached = nest.reached(self.shape)
        if reached is None:
            return
        if not reached:
            self.all = True
        for axis, stretch in reached.items():
            if not stretch.stride or is_at_most(1, stretch.count):
                self._join(_slab(axis, stretch.first, stretch.first + stretch.length))
            if stretch.stride:
                self.blocks.append((axis, stretch))
                self._join_blocks(axis, stretch.stride)

    def is_whole(self) -> bool:
        return self.all or any(is_at_most(p.low, 0) and is_at_most(self.shape[p.axis], p.high) for p in self.slabs)

    def _join(self, slab: _Slab) -> None:
        """Puts a slab to those that it leaves no gap to."""
        while True:
            found = next(((other, both) for other in self.slabs if (both := slab.joined(other)) is not None), None)
            if found is None:
                break
            self.slabs.remove(found[0])
            slab = found[1]
        self.slabs.append(slab)

    def _join_blocks(self, axis: int, stride: int) -> None:
        """Makes a slab of blocks that fill the distance between them.

        With blocks at `first + stride * k` for k below `count`, the next ones are those that are missing: what lies
        before each of these, and not before the first of all, is there.
        """
        same = [each for at, each in self.blocks if at == axis and each.stride == stride]
        for begin in same:
            ahead = [(each.first - begin.first, each) for each in same]
            filled = 0
            used = []
            for gap, each in sorted(((g, e) for g, e in ahead if isinstance(g, int) and g >= 0), key=itemgetter(0)):
                if gap <= filled and isinstance(each.length, int):
                    filled = max(filled, gap + each.length)
                    used.append(each.first + stride * each.count)
            if filled >= stride:
                self._join(_slab(axis, begin.first, minimum(*used)))
                return


class CallCoverage:
    """Which parameters functions overwrite, each function looked at once."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._known: dict[Function, frozenset[Buffer]] = {}

    def count_that_overwrite(
        self, groups: Sequence[Sequence[Touch]], around: Region, buffer: Buffer, space: IndexSpace
    ) -> int:
        """As the function of this name, and 1 where the first statement is a call that overwrites the buffer."""
        if isinstance(groups[0][0].node, KernelCall):
            return int(self._overwrites(groups[0], around, buffer, space))
        return count_that_overwrite(groups, around, buffer, space)

    def stored_wholly(self) -> Iterator[Buffer]:
        """The parameters of which each element is surely stored, where all dims are at least 1."""
        for param, allocation in self._facts.params.items():
            writes = [touch for touch in allocation.touches if touch.kind is AccessKind.WRITE]
            if self._begins_anew(allocation, writes, self._facts.space):
                yield param

    def _overwrites(self, touches: Sequence[Touch], around: Region, buffer: Buffer, space: IndexSpace) -> bool:
        """Whether a statement of `around`, whose first touch is made by a call, overwrites the buffer.

        The call must come in each iteration of loops that run, before all else that the statement does with the buffer,
        and be given the buffer itself, once. The proof in the callee may have taken its dims to be at least 1.
        """
        call, param = touches[0].node, touches[0].param
        assert isinstance(call, KernelCall)
        position, region = touches[0].position, touches[0].region
        own = [touch for touch in touches if touch.position == position]
        return (
            param is not None
            and all(touch.node is call and touch.param is param for touch in own)
            and touches[0].buffer is buffer
            and all(touch.position >= position and is_within(touch.region, region) for touch in touches)
            and all(_surely_runs(each, space) for each in regions_between(region, around))
            and not may_be_empty(call, space.extents)
            and param in self._overwritten_by(call.callee)
        )

    def _overwritten_by(self, func: Function) -> frozenset[Buffer]:
        """The parameters of which `func` writes all elements before it reads any."""
        if func not in self._known:
            for each in closure_of(func):
                if each not in self._known:
                    self._known[each] = frozenset(self._found(self._facts.of(each)))
        return self._known[func]

    def _found(self, facts: Facts) -> Iterator[Buffer]:
        for param, allocation in facts.params.items():
            is_written = any(touch.kind is AccessKind.WRITE for touch in allocation.touches)
            if is_written and not param.volatile and self._begins_anew(allocation, allocation.touches, facts.space):
                yield param

    def _begins_anew(self, allocation: Allocation, touches: Sequence[Touch], space: IndexSpace) -> bool:
        """Whether the first statements write some of a buffer, reading none, and the next ones overwrite all of it.

        It is asked of these of its touches.
        """
        groups = list(by_statement(allocation.home, touches))
        for at, group in enumerate(groups):
            ahead = groups[at : at + MOST_TOGETHER]
            if self.count_that_overwrite(ahead, allocation.home, allocation.buffer, space):
                return True
            if any(touch.kind is not AccessKind.WRITE for touch in group):
                return False
        return False


def _surely_runs(region: Region, space: IndexSpace) -> bool:
    loop = region.composite
    if not isinstance(loop, For) or loop.kind not in (ForKind.SERIAL, ForKind.UNROLLED):
        return False
    count = trip_count(loop, space)
    return count is not None and is_at_most(1, count)
