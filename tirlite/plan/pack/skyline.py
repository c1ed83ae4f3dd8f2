"""Skyline: blocks and their ranks in, offsets out. The lowest place is filled next, by the block that is pressed most.

Each block rests on what was placed before it, or on the ground; what lies below the skyline is not looked at again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from heapq import heapify, heappop, heapreplace

from tirlite.plan.pack.blocks import Piece, Sections
from tirlite.record import record


@record(frozen=False)
class Work:
    """Looks at blocks that may still be spent."""

    left: int


@record(frozen=False)
class Skyline:
    """A state of the skyline: the height of each section, and the bytes that are still to be placed there."""

    sections: Sections
    aligns: Sequence[int]
    height: list[int] = field(init=False)
    left: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.height = [0] * len(self.sections.load)
        self.left = list(self.sections.load)

    def fill(self, ranks: Sequence[float], work: Work, *, pressed: bool = True) -> list[int]:
        """Offsets of all blocks. At equal height the least rank goes first.

        If `pressed`, the bytes still to be placed where the block lives, at most, are taken off its rank. Heights only
        grow, and those bytes only shrink, so a rank in the heap that is out of date is too good, and it is enough to
        look again at the best.
        """
        spans, aligns = self.sections.spans, self.aligns
        offsets = [0] * len(spans)
        area = [-sum(size * (high - low) for low, high, size in rows) for rows in spans]
        heap = [(0, self.rank(rows, ranks[i], pressed=pressed), area[i], i) for i, rows in enumerate(spans)]
        heapify(heap)
        while heap:
            offset, rank, _, number = heap[0]
            rows = spans[number]
            lowest = self.lowest(rows)
            if aligns[number] > 1:
                lowest = -(-lowest // aligns[number]) * aligns[number]
            current = self.rank(rows, ranks[number], pressed=pressed) if pressed else rank
            work.left -= 1
            if lowest != offset or current != rank:
                heapreplace(heap, (lowest, current, area[number], number))
                continue
            heappop(heap)
            offsets[number] = offset
            self.place(rows, offset)
        return offsets

    def lowest(self, rows: Sequence[Piece]) -> int:
        """The height above all that stands where the block lives."""
        if len(rows) == 1:
            ((low, high, _),) = rows
            return max(self.height[low:high])
        return max(max(self.height[low:high]) for low, high, _ in rows)

    def rank(self, rows: Sequence[Piece], rank: float, *, pressed: bool) -> float:
        if not pressed:
            return rank
        if len(rows) == 1:
            ((low, high, _),) = rows
            return rank - max(self.left[low:high])
        return rank - max(max(self.left[low:high]) for low, high, _ in rows)

    def place(self, rows: Sequence[Piece], offset: int) -> None:
        height, left = self.height, self.left
        for low, high, size in rows:
            height[low:high] = [offset + size] * (high - low)
            left[low:high] = [value - size for value in left[low:high]]
