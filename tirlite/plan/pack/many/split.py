"""Packs very many blocks by a split: few large ones from the ground up, all others upside down above them.

In large problems a few blocks make up most of what is live, and how these lie decides; the many small ones fill any
shape, so they are swept, and hang from the top.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from random import Random

from tirlite.plan.pack.blocks import Block, Piece, Sections
from tirlite.plan.pack.first_fit import Meeting, first_fit, meetings
from tirlite.plan.pack.many.hung import Hung
from tirlite.record import record

# Of so many blocks one is large, unless the large ones meet more often than this; the looks at pairs for all orders.
_PART = 31
_PAIRS = 400_000
_LOOKS = 4_000_000
# A block costs as much as so many pairs, whatever it meets.
_OWN = 10
# Fewer large blocks than this are not worth it.
_FEW = 16
# By how much a block that stands out moves forward in the order, and the seed of that.
_FORWARD = (0.3, 0.9)
_SEED = 7_411


def part_of_largest(blocks: Sequence[Block], sections: Sections) -> float:
    """The most bytes of the few largest blocks that are live together, as a part of the most of all blocks."""
    ranked = sorted(range(len(blocks)), key=lambda i: (-blocks[i].size, i))
    change = [0] * (len(sections.load) + 1)
    for number in ranked[: len(blocks) // _PART]:
        for low, high, size in sections.spans[number]:
            change[low] += size
            change[high] -= size
    return max(accumulate(change), default=0) / max(sections.floor, 1)


def split(blocks: Sequence[Block], sections: Sections) -> Iterator[list[int]]:
    """Offsets of blocks without fixed ones, ever lower."""
    ranked = sorted(range(len(blocks)), key=lambda i: (-blocks[i].size, i))
    count = len(blocks) // _PART
    near = None
    while near is None and count >= _FEW:
        large = sorted(ranked[:count])
        near = meetings(Sections(tuple(sections.spans[i] for i in large), sections.load), _PAIRS)
        count //= 2
    if near is None:
        return
    hung = Hung.of(blocks, sections, large)
    floor = _Floor.of([blocks[i] for i in large], [sections.spans[i] for i in large], near, hung.depth, sections.load)
    for bottoms, top in floor.placed():
        yield hung.offsets(bottoms, top)


@record
class _Floor:
    """Large blocks, which others each meets, the depth of what hangs above each, and the most that is live with it."""

    blocks: Sequence[Block]
    spans: Sequence[Sequence[Piece]]
    near: Sequence[Sequence[Meeting]]
    depths: Sequence[int]
    loads: Sequence[int]
    least: int

    @classmethod
    def of(
        cls,
        blocks: Sequence[Block],
        spans: Sequence[Sequence[Piece]],
        near: Sequence[Sequence[Meeting]],
        depth: Sequence[int],
        load: Sequence[int],
    ) -> _Floor:
        depths, loads = ([max(max(row[low:high]) for low, high, _ in rows) for rows in spans] for row in (depth, load))
        return cls(blocks, spans, near, depths, loads, max(load))

    def placed(self) -> Iterator[tuple[list[int], int]]:
        """Offsets by first fit, and the bytes that they need below what hangs above them; each better than the last."""
        numbers = range(len(self.blocks))
        looks = sum(map(len, self.near)) + _OWN * len(numbers)
        above = [block.size + depth for block, depth in zip(self.blocks, self.depths, strict=True)]
        noise = Random(_SEED)
        least = -1
        orders = self._orders()
        ranks = [0.0] * len(numbers)
        for step in range(max(len(orders), _LOOKS // looks)):
            order = orders[step] if step < len(orders) else sorted(numbers, key=ranks.__getitem__)
            offsets = first_fit(self.blocks, self.near, order)
            ends = [offset + reach for offset, reach in zip(offsets, above, strict=True)]
            top = max(ends)
            if least < 0 or top < least:
                least = top
                yield offsets, top
                if step < len(orders):
                    for place, i in enumerate(order):
                        ranks[i] = float(place)
            if top <= self.least:
                return
            if step >= len(orders) - 1:
                bar = (top + self.least) // 2
                ranks = [rank * noise.uniform(*_FORWARD) if ends[i] > bar else rank for i, rank in enumerate(ranks)]

    def _orders(self) -> list[list[int]]:
        """Those that live where most is live first, those that meet most others, and the largest."""
        size = [block.size for block in self.blocks]
        width = [sum(high - low for low, high, _ in rows) for rows in self.spans]
        keys = (
            [(-load, -each * wide) for load, each, wide in zip(self.loads, size, width, strict=True)],
            [(-len(met), -each) for met, each in zip(self.near, size, strict=True)],
            [(-each, -wide) for each, wide in zip(size, width, strict=True)],
        )
        return [sorted(range(len(size)), key=lambda i, key=key: (key[i], i)) for key in keys]  # type: ignore[misc]
