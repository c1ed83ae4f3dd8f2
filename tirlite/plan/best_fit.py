"""Best fit in order of time: items in, slots out. Each item takes the free storage that suits it best.

A sweep with a heap of endings and a list of idle storage ordered by size: O(n log n), also when nothing can be shared.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import field
from heapq import heappop, heappush
from itertools import islice

from tirlite.plan.decision import Choice, Decision
from tirlite.plan.items import Item
from tirlite.plan.match_range import matches
from tirlite.plan.occupancy import Occupancy
from tirlite.plan.order import Order
from tirlite.plan.slots import Slot
from tirlite.record import record
from tirlite.sizes import Size, maximum

# How many candidates are looked at where a proof may fail, and where a lifetime has gaps.
_PROOFS = 8
_GAPS = 64
# A maximum of more sizes than this is left to the end; the storage then counts as smaller than it is.
_WIDE = 8


@record(frozen=False)
class _Track:
    number: int
    size: Size
    value: int
    end: int
    width: int = 1
    slot: Slot = field(default_factory=Slot)
    busy: Occupancy = field(default_factory=Occupancy)

    def grow(self, item: Item) -> None:
        self.value = max(self.value, item.value)
        if isinstance(self.size, int) and isinstance(item.size, int):
            self.size = max(self.size, item.size)
        elif self.width < _WIDE:
            self.size = maximum(self.size, item.size)
            self.width += 1


def best_fit(items: Sequence[Item], order: Order, match_range: int | None = None) -> list[Slot]:
    """Slots for the items: each takes free storage of its size, else the smallest with room, else the largest.

    With a match range it takes what `matches` only.
    """
    sweep = _Sweep(order, match_range)
    births = sorted(range(len(items)), key=lambda i: (items[i].live[0][0], -items[i].value, i))
    for index in births:
        sweep.place(items[index])
    return [track.slot for track in sweep.tracks]


class _Sweep:
    """The state at one time: idle storage by value, storage in a gap of a lifetime, and the endings to come."""

    def __init__(self, order: Order, match_range: int | None) -> None:
        self.order = order
        self.match_range = match_range
        self.tracks: list[_Track] = []
        self.idle: list[tuple[int, int]] = []
        self.gapped: dict[int, _Track] = {}
        self.endings: list[tuple[int, int]] = []

    def place(self, item: Item) -> None:
        self._advance(item.live[0][0])
        track, choice = self._choose(item)
        before = track.size
        if choice is not Choice.OPENS:
            track.grow(item)
        item.join(track.slot, Decision(choice, None if choice is Choice.OPENS else before))
        track.busy.take(item.live)
        if len(item.live) > 1:
            self.gapped[track.number] = track
        if item.live[-1][1] > track.end or choice is Choice.OPENS:
            track.end = item.live[-1][1]
            heappush(self.endings, (track.end, track.number))

    def _advance(self, now: int) -> None:
        """Make idle what has ended."""
        while self.endings and self.endings[0][0] <= now:
            end, number = heappop(self.endings)
            track = self.tracks[number]
            if track.end == end:
                self.gapped.pop(number, None)
                track.busy.clear()
                insort(self.idle, (track.value, number))

    def _choose(self, item: Item) -> tuple[_Track, Choice]:
        """The storage to take, taken off the idle list, and why."""
        place, choice = self._best_idle(item)
        gap = self._best_gap(item)
        if gap is not None and (place < 0 or _rank(gap, item) < _rank(self.tracks[self.idle[place][1]], item)):
            return gap, Choice.ROOM if self.order.fits(item.size, gap.size) else Choice.GROWS
        if place >= 0:
            return self.tracks[self.idle.pop(place)[1]], choice
        track = _Track(len(self.tracks), item.size, item.value, item.live[-1][1])
        self.tracks.append(track)
        return track, Choice.OPENS

    def _best_idle(self, item: Item) -> tuple[int, Choice]:
        idle, tracks = self.idle, self.tracks
        middle = bisect_left(idle, (item.value, -1))
        upward: Sequence[int] = range(middle, min(middle + _PROOFS, len(idle)))
        downward: Sequence[int] = range(middle - 1, max(middle - _PROOFS, 0) - 1, -1)
        if self.match_range is not None:
            upward = [place for place in upward if self._matches(item, tracks[idle[place][1]])]
            downward = [place for place in downward if self._matches(item, tracks[idle[place][1]])]
        for place in upward:
            if tracks[idle[place][1]].size == item.size:
                return place, Choice.SAME
            if idle[place][0] > item.value:
                break
        for place in upward:
            if self.order.fits(item.size, tracks[idle[place][1]].size):
                return place, Choice.ROOM
        for place in downward:
            if self.order.fits(tracks[idle[place][1]].size, item.size):
                return place, Choice.GROWS
        # Nothing is proved: the nearest above grows least, or else the nearest below.
        return next(iter(upward or downward), -1), Choice.GROWS

    def _best_gap(self, item: Item) -> _Track | None:
        free = [track for track in islice(self.gapped.values(), _GAPS) if track.busy.is_free(item.live)]
        if self.match_range is not None:
            free = [track for track in free if self._matches(item, track)]
        return min(free, key=lambda track: _rank(track, item), default=None)

    def _matches(self, item: Item, track: _Track) -> bool:
        return matches(item.size, track.size, self.match_range)


def _rank(track: _Track, item: Item) -> tuple[bool, int, int]:
    """Less is better: room first, and then what is nearest in size."""
    return track.value < item.value, abs(track.value - item.value), track.number
