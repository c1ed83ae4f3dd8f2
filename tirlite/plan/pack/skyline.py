"""Packs blocks by skyline and ranks: the lowest place is filled next, by the block that is pressed most.

Each block rests on what was placed before it, or on the ground; what lies below the skyline is not looked at again.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import field
from heapq import heapify, heappop, heapreplace
from typing import TypeAlias

from tirlite.plan.pack.blocks import Piece, Sections
from tirlite.record import record

# Sections that are looked at until a fill gives up, in all, or more where there are many blocks: about a second.
_PATIENCE, _PATIENCE_PER_BLOCK = 40_000_000, 2_000

# A block that waits: its offset and its rank when it was last looked at, its area below 0, its number.
_Entry: TypeAlias = tuple[int, float, int, int]


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

    def fill(self, ranks: Sequence[float], work: Work) -> list[int]:
        """Offsets of all blocks; at equal height the least rank goes first. Empty if it is given up.

        Where hundreds of blocks live to one end, each that is placed lifts all that wait: the cost grows like the cube.
        The bytes still to be placed where the block lives, at most, are taken off its rank. Heights only grow, and
        those bytes only shrink, so what is out of date in the heap is too good, and it is enough to look again at the
        best.
        """
        spans, aligns, height, left = self.sections.spans, self.aligns, self.height, self.left
        offsets = [0] * len(spans)
        lines, waits_in = self._lines(ranks)
        heap = [line.pop() for line in lines]
        heapify(heap)
        patience = max(_PATIENCE, _PATIENCE_PER_BLOCK * len(spans))
        looks = 0
        while heap:
            if patience < 0:
                return []
            offset, rank, area, number = heap[0]
            rows = spans[number]
            looks += 1
            low, high, _ = rows[0]
            patience -= high - low
            lowest = max(height[low:high]) if len(rows) == 1 else self.lowest(rows)
            if aligns[number] > 1:
                lowest = -(-lowest // aligns[number]) * aligns[number]
            current = ranks[number] - (max(left[low:high]) if len(rows) == 1 else self.pressure(rows))
            if lowest != offset or current != rank:
                heapreplace(heap, (lowest, current, area, number))
                continue
            if waits_in[number]:
                heapreplace(heap, waits_in[number].pop())
            else:
                heappop(heap)
            offsets[number] = offset
            self.place(rows, offset)
        work.left -= looks
        return offsets

    def _lines(self, ranks: Sequence[float]) -> tuple[list[list[_Entry]], list[list[_Entry]]]:
        """The lines that blocks wait in, the best at the end, and the line of each block; all lie on the ground.

        Blocks of one lifetime and alignment always have one offset and one pressure, so that only the best of them
        has to be looked at: networks have hundreds of weights that live throughout.
        """
        lines: dict[Hashable, list[_Entry]] = {}
        pressure: dict[Hashable, int] = {}
        waits_in = []
        for number, rows in enumerate(self.sections.spans):
            key = (rows[0].low, rows[0].high, self.aligns[number]) if len(rows) == 1 else number
            if key not in pressure:
                pressure[key] = self.pressure(rows)
            area = -sum(size * (high - low) for low, high, size in rows)
            line = lines.setdefault(key, [])
            line.append((0, ranks[number] - pressure[key], area, number))
            waits_in.append(line)
        for line in lines.values():
            line.sort(reverse=True)
        return list(lines.values()), waits_in

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
