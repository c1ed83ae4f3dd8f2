"""Packs many blocks by valleys: the lowest one of the skyline is filled next, by the block of best rank.

A block is taken into a valley that is as wide as it lives or wider, and rests on its ground; a valley that no block
fits into is filled up to the lower of its sides. So each block lies as low as its rank lets it, as with `Skyline`; but
only blocks that are born in the valley are looked at, and these are few. Cost: about O(n log n).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from random import Random

from tirlite.plan.pack.blocks import Block, Sections
from tirlite.record import record

# Of more blocks than these, which are the best is worked out for all at once.
_FEW = 20
_NEVER = 1 << 62
# Looks at blocks of one run, by block. Only blocks that are all born one after the other, each best, need more.
_LOOKS = 20_000
# Keys that ranks come from before what stands out moves forward.
_KEYS = 5
# Ranks that are equal are told apart in an order that has nothing to do with time, so that valleys are halved.
_SCATTER = 2_654_435_761
# By how much a block that stands out moves forward, and the seed of that.
_FORWARD = (0.3, 0.9)
_SEED = 5_039


def valleys(blocks: Sequence[Block], sections: Sections, runs: int) -> Iterator[list[int]]:
    """Offsets of blocks without fixed ones, by so many runs.

    The first runs are by keys of their own, the others by that of the best of them, with blocks that stand out above
    the floor moved forward.
    """
    numbers = [number for number, block in enumerate(blocks) if block.size]
    numbers.sort(key=lambda number: (sections.spans[number][0].low, number))
    items = _Items.of([blocks[n] for n in numbers], [sections.spans[n] for n in numbers], len(sections.load))
    noise = Random(_SEED)
    floor = sections.floor
    best: list[float] = []
    least = -1
    keys = items.keys([blocks[n].high - blocks[n].low for n in numbers])
    for run in range(runs):
        key = next(keys, None)
        places = _places(best if key is None else key)
        found = items.filled(places)
        if found is None:
            return
        offsets = [0] * len(blocks)
        for number, offset in zip(numbers, found, strict=True):
            offsets[number] = offset
        yield offsets
        ends = [offset + size for offset, size in zip(found, items.sizes, strict=True)]
        top = max(ends, default=0)
        if least < 0 or top < least:
            least, best = top, [float(place) for place in places]
        if run >= _KEYS - 1:
            best = [
                rank * noise.uniform(*_FORWARD) if end > floor else rank for rank, end in zip(best, ends, strict=True)
            ]


def _places(keys: Sequence[float]) -> list[int]:
    """For each key its place among all."""
    places = [0] * len(keys)
    for place, i in enumerate(sorted(range(len(keys)), key=lambda i: (keys[i], i * _SCATTER % (1 << 32)))):
        places[i] = place
    return places


@record
class _Items:
    """Blocks by birth: first section, the one after the last, size, alignment; and by section the first born there."""

    lows: list[int]
    highs: list[int]
    sizes: list[int]
    aligns: list[int]
    first: list[int]

    @classmethod
    def of(cls, blocks: Sequence[Block], spans: Sequence[Sequence[tuple[int, int, int]]], count: int) -> _Items:
        lows = [rows[0][0] for rows in spans]
        first = [0] * (count + 1)
        for low in lows:
            first[low + 1] += 1
        for section in range(count):
            first[section + 1] += first[section]
        return cls(lows, [rows[-1][1] for rows in spans], [b.size for b in blocks], [b.align for b in blocks], first)

    def keys(self, lives: Sequence[int]) -> Iterator[list[float]]:
        """What ranks blocks, the least first: large and long-lived, in time or in sections, by several weights."""
        widths = [high - low for low, high in zip(self.lows, self.highs, strict=True)]
        yield [-float(life * size) for life, size in zip(lives, self.sizes, strict=True)]
        yield [-float(life) for life in lives]
        yield [-float(wide * size) for wide, size in zip(widths, self.sizes, strict=True)]
        yield [-float(wide * wide * size) for wide, size in zip(widths, self.sizes, strict=True)]
        yield [-float(life * life * size) for life, size in zip(lives, self.sizes, strict=True)]

    def filled(self, ranks: Sequence[int]) -> list[int] | None:
        """The offsets by one run; None where it takes too long."""
        import numpy as np

        order = np.array(ranks, np.int64)
        ends = np.array(self.highs, np.int64)
        # The same once more: of few blocks Python finds the best sooner in a list.
        alive = list(self.highs)
        ground = _Ground(len(self.first) - 1)
        offsets = [0] * len(ranks)
        looks = _LOOKS * len(ranks)
        valley = ground.lowest()
        while valley is not None:
            low, high, height = valley
            start, stop = self.first[low], self.first[high]
            looks -= stop - start
            if looks < 0:
                return None
            number = -1
            if stop - start > _FEW:
                inside = (ends[start:stop] <= high).nonzero()[0]
                if len(inside):
                    number = start + int(inside[order[start:stop][inside].argmin()])
            else:
                fitting = [other for other in range(start, stop) if alive[other] <= high]
                number = min(fitting, key=ranks.__getitem__, default=-1)
            if number >= 0:
                align = self.aligns[number]
                offset = -(-height // align) * align
                offsets[number] = offset
                # What is placed ends never, so that no valley is wide enough for it.
                ends[number] = alive[number] = _NEVER
                ground.place(low, self.lows[number], self.highs[number], offset + self.sizes[number])
            elif not ground.raise_valley(low):
                break
            valley = ground.lowest()
        return offsets


class _Ground:
    """The skyline as stretches of equal height: by their first section the one after the last, and the height."""

    def __init__(self, count: int) -> None:
        self._end = [0] * count + [count]
        self._end[0] = count
        self._begin = [0] * (count + 1)
        # The height of a stretch, -1 where none begins.
        self._height = [-1] * (count + 1)
        self._height[0] = 0
        self._count = count
        self._heap = [(0, 0)]

    def lowest(self) -> tuple[int, int, int] | None:
        """(first section, the one after the last, height) of the lowest stretch; None when all is done."""
        while self._heap:
            height, low = heappop(self._heap)
            if self._height[low] == height and low < self._count:
                return low, self._end[low], height
        return None

    def raise_valley(self, low: int) -> bool:
        """Fill a stretch up to the lower of its sides; False where it has none."""
        high = self._end[low]
        sides = [self._height[self._begin[low]]] if low else []
        sides += [self._height[high]] if high < self._count else []
        if not sides:
            return False
        self._put(low, high, min(sides))
        return True

    def place(self, valley: int, low: int, high: int, top: int) -> None:
        """Put something of this top on a part of the stretch that begins at `valley`, which is that or more."""
        end, height = self._end[valley], self._height[valley]
        if valley < low:
            self._link(valley, low, height)
        if high < end:
            self._link(high, end, height)
        self._put(low, high, top)

    def _put(self, low: int, high: int, height: int) -> None:
        """Set the height of a stretch, one with its neighbours of equal height."""
        self._height[low] = -1
        if low and self._height[self._begin[low]] == height:
            low = self._begin[low]
        if high < self._count and self._height[high] == height:
            self._height[high], high = -1, self._end[high]
        self._link(low, high, height)

    def _link(self, low: int, high: int, height: int) -> None:
        self._end[low], self._begin[high], self._height[low] = high, low, height
        heappush(self._heap, (height, low))
