"""The sweep: many blocks in, offsets out, in order of time, as an allocator with perfect knowledge of sizes would.

Cost: O(n log n). Each block takes the tightest hole between those that live when it is born.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from heapq import heappop, heappush

from tirlite.plan.pack.blocks import Block

_LOOKS = 16


def sweep(blocks: Sequence[Block], *, backward: bool = False) -> list[int]:
    """Offsets of blocks without fixed ones; of those born together the longest lived come first.

    Lifetimes count without their gaps. With `backward` time runs from the end.
    """
    lives = [(-block.high, -block.low) if backward else (block.low, block.high) for block in blocks]
    order = sorted(range(len(blocks)), key=lambda i: (lives[i][0], -lives[i][1], i))
    offsets = [0] * len(blocks)
    holes = _Holes()
    endings: list[tuple[int, int]] = []
    for number in order:
        low, high = lives[number]
        while endings and endings[0][0] <= low:
            _, ended = heappop(endings)
            holes.free(offsets[ended], offsets[ended] + blocks[ended].size)
        size = blocks[number].size
        if size == 0:
            continue
        offsets[number] = holes.take(size, blocks[number].align)
        heappush(endings, (high, number))
    return offsets


class _Holes:
    """Free stretches between what is taken, by their ends and by their length; all above the top is free as well."""

    def __init__(self) -> None:
        self.top = 0
        self.by_start: dict[int, int] = {}
        self.by_end: dict[int, int] = {}
        self.by_length: list[tuple[int, int]] = []

    def take(self, size: int, align: int) -> int:
        """The offset of the tightest room for a block, taken."""
        place = bisect_left(self.by_length, (size, 0))
        for length, start in self.by_length[place : place + _LOOKS]:
            offset = -(-start // align) * align
            if offset + size <= start + length:
                self._remove(start, start + length)
                self._add(start, offset)
                self._add(offset + size, start + length)
                return offset
        start, self.top = self.top, -(-self.top // align) * align + size
        self._add(start, self.top - size)
        return self.top - size

    def free(self, start: int, end: int) -> None:
        """Make a hole, one with its neighbours; at the top, the top comes down."""
        if start in self.by_end:
            below = self.by_end[start]
            self._remove(below, start)
            start = below
        if end == self.top:
            self.top = start
            return
        if end in self.by_start:
            above = self.by_start[end]
            self._remove(end, above)
            end = above
        self._add(start, end)

    def _add(self, start: int, end: int) -> None:
        if start < end:
            self.by_start[start] = end
            self.by_end[end] = start
            insort(self.by_length, (end - start, start))

    def _remove(self, start: int, end: int) -> None:
        del self.by_start[start], self.by_end[end]
        del self.by_length[bisect_left(self.by_length, (end - start, start))]
