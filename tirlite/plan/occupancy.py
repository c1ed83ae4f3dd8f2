"""When a stretch of storage is taken: disjoint intervals of time in, "is it free then?" out."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from tirlite.plan.request import Interval


class Occupancy:
    """Disjoint half-open intervals, ordered. Asking costs O(log n) for each interval asked about."""

    __slots__ = ("_highs", "_lows")

    def __init__(self) -> None:
        self._lows: list[int] = []
        self._highs: list[int] = []

    def is_free(self, live: Iterable[Interval]) -> bool:
        """Whether no interval of `live` meets one that is taken."""
        lows, highs = self._lows, self._highs
        for low, high in live:
            place = bisect_right(highs, low)
            if place < len(lows) and lows[place] < high:
                return False
        return True

    def slack(self, low: int, high: int) -> tuple[int, int]:
        """How long it is free around [low, high): (sides without an end, time on the others). Less is tighter."""
        before, after = bisect_right(self._highs, low), bisect_left(self._lows, high)
        endless, time = 2, 0
        if before > 0:
            endless, time = endless - 1, time + low - self._highs[before - 1]
        if after < len(self._lows):
            endless, time = endless - 1, time + self._lows[after] - high
        return endless, time

    def take(self, live: Iterable[Interval]) -> None:
        """Take intervals that are free."""
        for low, high in live:
            place = bisect_left(self._lows, low)
            self._lows.insert(place, low)
            self._highs.insert(place, high)

    def clear(self) -> None:
        """Free everything."""
        self._lows.clear()
        self._highs.clear()
