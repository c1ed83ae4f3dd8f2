"""Computes the lifetime of each allocation of a function.

A lifetime runs from the first touch to the last over the positions of the linear access sequence, and is half-open.
A composite beside the Allocate counts as a whole, from its `before` to its `after`: what is allocated outside a loop
and touched inside lives as long as the loop. Where an `if` beside the Allocate holds all touches, its branches exclude
each other, and the lifetime is that inside each branch. A buffer whose address is handed on lives to the end of its
region, whatever is said of the use; one that is volatile lives as long as its region.

What several threads see lives longer, as they run at no fixed pace: until the next barrier after its last use that all
of them pass, and from the last one before its first.
"""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.analysis.access import OPAQUE, Allocation, LinearSequence, Region, Touch, linear_sequence
from tirlite.analysis.regions import child_of
from tirlite.analysis.threads import Visibility
from tirlite.ir import Buffer, For, IfThenElse, PrimFunc, While
from tirlite.ir.demand import of_prim_func
from tirlite.names import UniqueNames
from tirlite.record import record

Interval = tuple[int, int]


@record(guarded=False)
class Lifetime:
    """When one allocation lives: disjoint half-open intervals of positions, in order; none where it is never touched.

    `home` is the body that it is allocated in.
    """

    buffer: Buffer
    live: tuple[Interval, ...]
    home: Region

    @property
    def attach(self) -> Region | None:
        """The innermost parallel or thread-bound loop around the Allocate, or None: the whole function."""
        return self.home.attach

    def __str__(self) -> str:
        return f"{self.buffer.name}: " + (", ".join(f"[{lo}, {hi})" for lo, hi in self.live) or "never")


@of_prim_func
def lifetimes(func: PrimFunc) -> dict[str, Lifetime]:
    """The lifetime of each allocation by the name of its buffer; equal names get `_1`, `_2` ... in order."""
    names = UniqueNames()
    return {names.unique(each.buffer.name): each for each in lifetimes_of(linear_sequence(func))}


def lifetimes_of(sequence: LinearSequence) -> list[Lifetime]:
    """The lifetime of each allocation, in order of allocation."""
    return [Lifetime(each.buffer, _live(each), each.home) for each in sequence.allocations]


def _live(allocation: Allocation) -> tuple[Interval, ...]:
    home, touches = allocation.home, allocation.touches
    if not touches:
        return ()
    if allocation.visibility is None and not allocation.buffer.volatile and _are_plain(touches, home):  # the usual case
        return ((touches[0].position, touches[-1].position + 1),)
    if allocation.visibility is Visibility.NESTED:
        assert home.attach is not None
        return (_whole(home.attach),)
    if allocation.buffer.volatile or OPAQUE in [touch.kind for touch in touches]:
        first, last = _whole(home)
        if allocation.visibility is Visibility.BLOCK:
            return _between_barriers(home, (first, last))
        if not allocation.buffer.volatile:
            # Nobody has an address that was not yet taken.
            first, _ = _hull(touches, [child_of(home, touch.region) for touch in touches])
        return ((first, last),)
    if allocation.visibility is Visibility.BLOCK:
        # Threads may be in both branches of an `if` at one time.
        return _between_barriers(home, _hull(touches, [child_of(home, touch.region) for touch in touches]))
    intervals: list[Interval] = []
    groups = [(home, touches)]
    while groups:
        region, inside = groups.pop()
        tops = [child_of(region, touch.region) for touch in inside]
        branches = list(dict.fromkeys(tops))
        if _exclusive(branches):
            groups += [(b, [t for t, top in zip(inside, tops, strict=True) if top is b]) for b in branches if b]
        else:
            intervals.append(_hull(inside, tops))
    return tuple(sorted(intervals))


def _are_plain(touches: Sequence[Touch], home: Region) -> bool:
    """Whether these are all loads and stores in one body."""
    return not [touch for touch in touches if touch.region is not home or touch.kind is OPAQUE]


def _whole(region: Region) -> Interval:
    return region.before + 1, region.after


def _between_barriers(home: Region, interval: Interval) -> tuple[Interval, ...]:
    """`interval`, at the level of `home`, from the last barrier before it to the next one after it.

    Where a body has none there, one further out counts; and if it is that of a loop, so do the parts of the iterations
    before and after that no barrier parts from it.
    """
    (low, high), parts = interval, []
    begin: int | None = None
    end: int | None = None
    region = home
    while True:
        if begin is None:
            begin = max((each for each in region.barriers if each < low), default=None)
        if end is None:
            end = min((each for each in region.barriers if each >= high), default=None)
        if region is home.attach or region.parent is None or (begin is not None and end is not None):
            break
        if isinstance(region.composite, For | While):
            first, last = _whole(region)
            if begin is None:
                parts.append((max(region.barriers, default=first), last))
                low = region.before
            if end is None:
                parts.append((first, min(region.barriers, default=last)))
                high = region.after + 1
        region = region.parent
    first, last = _whole(region)
    return _united([*parts, (first if begin is None else begin, last if end is None else end)])


def _united(intervals: list[Interval]) -> tuple[Interval, ...]:
    united: list[Interval] = []
    for low, high in sorted(intervals):
        if united and low <= united[-1][1]:
            united[-1] = united[-1][0], max(high, united[-1][1])
        elif low < high:
            united.append((low, high))
    return tuple(united)


def _hull(touches: list[Touch], tops: list[Region | None]) -> Interval:
    """From the first touch to the last, a touch inside a composite counting as all of the composite."""
    start = tops[0].before if tops[0] is not None else touches[0].position
    ends = (touch.position if top is None else top.after for touch, top in zip(touches, tops, strict=True))
    return start, max(ends) + 1


def _exclusive(branches: list[Region | None]) -> bool:
    """Whether these are one branch or both branches of one if, and nothing beside it."""
    first = branches[0]
    if first is None or not isinstance(first.composite, IfThenElse):
        return False
    return all(b is not None and b.before == first.before for b in branches)
