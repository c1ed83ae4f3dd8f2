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
        grow, and those bytes only shrink, so what is out of date in the heap is too good, and it is enough to look
        again at the best.
        """
        spans, aligns, height, left = self.sections.spans, self.aligns, self.height, self.left
        offsets = [0] * len(spans)
        heap = self._heap(ranks, pressed=pressed)
        looks = 0
        while heap:
            offset, rank, area, number = heap[0]
            rows = spans[number]
            looks += 1
            low, high, _ = rows[0]
            lowest = max(height[low:high]) if len(rows) == 1 else self.lowest(rows)
            if aligns[number] > 1:
                lowest = -(-lowest // aligns[number]) * aligns[number]
            current = rank
            if pressed:
                current = ranks[number] - (max(left[low:high]) if len(rows) == 1 else self.pressure(rows))
            if lowest != offset or current != rank:
                heapreplace(heap, (lowest, current, area, number))
                continue
            heappop(heap)
            offsets[number] = offset
            self.place(rows, offset)
        work.left -= looks
        return offsets

    def _heap(self, ranks: Sequence[float], *, pressed: bool) -> list[tuple[int, float, int, int]]:
        """(offset, rank, area, number) of each block at the start: all lie on the ground."""
        spans = self.sections.spans
        heap = [
            (
                0,
                ranks[number] - (self.pressure(rows) if pressed else 0),
                -sum(size * (high - low) for low, high, size in rows),
                number,
            )
            for number, rows in enumerate(spans)
        ]
        heapify(heap)
        return heap

    def lowest(self, rows: Sequence[Piece]) -> int:
        """The height above all that stands where the block lives."""
        return max(max(self.height[low:high]) for low, high, _ in rows)

    def pressure(self, rows: Sequence[Piece]) -> int:
        """The most bytes that are still to be placed at some time at which the block lives."""
        return max(max(self.left[low:high]) for low, high, _ in rows)

    def place(self, rows: Sequence[Piece], offset: int) -> None:
        height, left = self.height, self.left
        for low, high, size in rows:
            height[low:high] = [offset + size] * (high - low)
            left[low:high] = [value - size for value in left[low:high]]
