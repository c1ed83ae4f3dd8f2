"""Packs many blocks by a sweep, in order of time, as an allocator would that knows all lifetimes.

Cost: O(n log n). Each block takes one of the tightest holes between those that live when it is born, beside a block
that dies when it does, so that they leave one large hole behind.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from heapq import heappop, heappush

from tirlite.plan.pack.blocks import Block

# Holes that are compared.
_LOOKS = 8
_NEVER = 1 << 62


def sweep(blocks: Sequence[Block], tightness: float, *, backward: bool = False) -> list[int]:
    """Offsets of blocks without fixed ones; of those born together the longest lived come first.

    Lifetimes count without their gaps. `tightness` says how much a hole as large again as the block counts against a
    neighbour that dies earlier or later by the block's whole life. With `backward` time runs from the end.
    """
    lives = [(-block.high, -block.low) if backward else (block.low, block.high) for block in blocks]
    sizes = [block.size for block in blocks]
    offsets = [0] * len(blocks)
    holes = _Holes(tightness)
    endings: list[tuple[int, int]] = []
    for number in sorted(range(len(blocks)), key=lambda i: (lives[i][0], -lives[i][1], i)):
        low, high = lives[number]
        while endings and endings[0][0] <= low:
            _, ended = heappop(endings)
            holes.free(offsets[ended], offsets[ended] + sizes[ended])
        if sizes[number]:
            offsets[number] = holes.take(sizes[number], blocks[number].align, low, high)
            heappush(endings, (high, number))
    return offsets


class _Holes:
    """Free stretches between what is taken, by their ends and by their length; all above the top is free as well.

    Beside them, by address, when the block dies that ends there, and the one that begins there.
    """

    def __init__(self, tightness: float) -> None:
        self.tightness = tightness
        self.top = 0
        self.by_start: dict[int, int] = {}
        self.by_end: dict[int, int] = {}
        self.by_length: list[tuple[int, int]] = []
        self.death_below: dict[int, int] = {}
        self.death_above: dict[int, int] = {}

    def take(self, size: int, align: int, birth: int, death: int) -> int:
        """The offset of the best room for a block, taken."""
        hole = self._best(size, align, birth, death)
        if hole is None:
            start, offset = self.top, -(-self.top // align) * align
            self.top = offset + size
            self._add(start, offset)
        else:
            start, offset = hole
            end = self.by_start[start]
            self._remove(start, end)
            self._add(start, offset)
            self._add(offset + size, end)
        self.death_above[offset] = self.death_below[offset + size] = death
        return offset

    def _best(self, size: int, align: int, birth: int, death: int) -> tuple[int, int] | None:
        """(start of the hole, offset in it), or None where no hole is large enough."""
        place = bisect_left(self.by_length, (size, 0))
        best: tuple[float, int, int] | None = None
        for length, start in self.by_length[place : place + _LOOKS]:
            end = start + length
            low, high = -(-start // align) * align, (end - size) // align * align
            if low > high:
                continue
            if length == size:
                return start, low
            below = abs(self.death_below.get(start, _NEVER) - death)
            above = abs(self.death_above.get(end, _NEVER) - death)
            cost = min(below, above) / (death - birth) + self.tightness * (length - size) / size
            if best is None or cost < best[0]:
                best = cost, start, low if below <= above else high
        return None if best is None else best[1:]

    def free(self, start: int, end: int) -> None:
        """Make a hole, one with its neighbours; at the top, the top comes down."""
        del self.death_above[start], self.death_below[end]
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
