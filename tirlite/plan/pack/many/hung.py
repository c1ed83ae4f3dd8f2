"""Hangs all blocks but the large ones: finds how far below the top of an arena these others begin.

The others are swept, or packed by the fill, and hang upside down from the top. What hangs lowest where too much does
may wait instead, and goes to where room is left when all else has its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from tirlite.plan.pack.blocks import Block, Piece, Sections
from tirlite.plan.pack.many.filled import filled
from tirlite.plan.pack.many.terrain import Times
from tirlite.plan.pack.sweep import sweep
from tirlite.plan.search.engine import Engine
from tirlite.record import record

# Of more sections than this with too many bytes, none is looked at.
_CROWDED = 64


@record
class Hung:
    """The numbers of large blocks, of those that hang, and of those that wait; how far below the top each that hangs
    begins, how deep they reach in each section, and the bytes in each that are kept for them and for those that wait.
    """

    blocks: Sequence[Block]
    sections: Sections
    large: Sequence[int]
    numbers: Sequence[int]
    drops: Sequence[int]
    depth: Sequence[int]
    taken: Sequence[int]
    waiting: Sequence[int] = ()

    @classmethod
    def of(
        cls, blocks: Sequence[Block], sections: Sections, large: Iterable[int], engine: Engine | None = None
    ) -> Hung:
        """All blocks but the large ones, swept, or filled in if there is an engine. None has a fixed offset."""
        taken = dict.fromkeys(sorted(large))
        small = [number for number in range(len(blocks)) if number not in taken]
        whole = [_rounded(block) for block in blocks]
        tops = None if engine is None else _packed(whole, small, engine)
        if tops is None:
            tops = sweep([whole[number] for number in small], 0)
        drops = [top + whole[number].size for top, number in zip(tops, small, strict=True)]
        depth = _depth(sections, small, drops)
        return cls(blocks, sections, list(taken), small, drops, depth, depth)

    @property
    def heights(self) -> list[int]:
        """For each section the bytes of the large blocks there, and of what is taken above them."""
        return [live + taken for live, taken in zip(live_bytes(self.sections, self.large), self.taken, strict=True)]

    def shortened(self, most: int) -> Hung:
        """With those waiting that hang lowest in sections that need more than `most` bytes.

        It is holes in what hangs that are too much there, so the fewer hang the less is too much. As a rule there are
        few such sections; where there are many, or more would wait than are large, all is left as it is.
        """
        heights, spans, drops = self.heights, self.sections.spans, dict(zip(self.numbers, self.drops, strict=True))
        crowded = [section for section, height in enumerate(heights) if height > most]
        if not crowded or len(crowded) > _CROWDED:
            return self
        out: dict[int, None] = {}
        for section in sorted(crowded, key=lambda section: -heights[section]):
            beside = [n for n in self.numbers if any(low <= section < high for low, high, _ in spans[n])]
            live = heights[section] - self.depth[section] + sum(self.blocks[n].size for n in beside if n in out)
            for number in sorted(beside, key=lambda number: -drops[number]):
                if live + drops[number] > most and number not in out:
                    out[number] = None
                    live += self.blocks[number].size
        if len(out) > len(self.large):
            return self
        kept = [number for number in self.numbers if number not in out]
        left = [drops[number] for number in kept]
        depth, waits, taken = _depth(self.sections, kept, left), list(live_bytes(self.sections, out)), list(self.depth)
        for section in crowded:
            taken[section] = depth[section] + waits[section]
        return replace(self, numbers=kept, drops=left, depth=depth, taken=taken, waiting=sorted(out))

    def offsets(self, bottoms: Sequence[int], top: int) -> list[int]:
        """Offsets of all blocks where the large ones lie so, and reach up to `top` with what hangs above them."""
        unit = max(block.align for block in self.blocks)
        end = -(-max(top, max(self.depth)) // unit) * unit
        offsets = [0] * len(self.blocks)
        for number, bottom in zip(self.large, bottoms, strict=True):
            offsets[number] = bottom
        for number, drop in zip(self.numbers, self.drops, strict=True):
            offsets[number] = end - drop
        return _filled(self.blocks, offsets, self.waiting) if self.waiting else offsets


def _rounded(block: Block) -> Block:
    """The block with sizes that keep what follows it aligned, also upside down."""
    if block.align == 1:
        return block
    pieces = (Piece(low, high, -(-size // block.align) * block.align) for low, high, size in block.pieces)
    return Block(tuple(pieces), block.align)


def live_bytes(sections: Sections, numbers: Iterable[int]) -> Iterator[int]:
    """The bytes of some blocks in each section."""
    change = [0] * (len(sections.load) + 1)
    for number in numbers:
        for low, high, size in sections.spans[number]:
            change[low] += size
            change[high] -= size
    return accumulate(change[:-1])


def _packed(blocks: Sequence[Block], small: Sequence[int], engine: Engine) -> list[int] | None:
    """Offsets of small blocks by the fill, those first that live where the most lives of all; None if it takes long."""
    import numpy as np

    times = Times.of(blocks)
    is_small = np.zeros(len(blocks), bool)
    is_small[small] = True
    part = times.some(is_small[times.order])
    floor = int(times.load.max(initial=0))
    found = filled(part, part.life.astype(np.float64), times.load, floor, engine)
    if found is None:
        return None
    offsets = np.zeros(len(blocks), np.int64)
    offsets[part.order] = found
    return [int(offset) for offset in offsets[small]]


def _depth(sections: Sections, numbers: Sequence[int], drops: Sequence[int]) -> list[int]:
    """How deep what hangs reaches in each section."""
    import numpy as np

    depth = np.zeros(len(sections.load), np.int64)
    for drop, number in sorted(zip(drops, numbers, strict=True)):
        for low, high, _ in sections.spans[number]:
            depth[low:high] = drop
    return [int(each) for each in depth]


def _filled(blocks: Sequence[Block], offsets: Sequence[int], waiting: Sequence[int]) -> list[int]:
    """The offsets, with those of blocks that wait: each, the longest-lived first, in the lowest room left for it."""
    import numpy as np

    pieces = [(low, high, number) for number, block in enumerate(blocks) for low, high, size in block.pieces if size]
    lows, highs, numbers = np.array(pieces, np.int64).T
    bottoms, sizes = np.array(offsets, np.int64), np.array([block.size for block in blocks], np.int64)
    is_placed = np.ones(len(blocks), bool)
    is_placed[list(waiting)] = False
    for number in sorted(waiting, key=lambda number: (blocks[number].low - blocks[number].high, number)):
        block = blocks[number]
        meets = np.zeros(len(blocks), bool)
        for low, high, _ in block.pieces:
            meets[numbers[(lows < high) & (highs > low)]] = True
        beside = (meets & is_placed).nonzero()[0]
        beside = beside[bottoms[beside].argsort(kind="stable")]
        ends = np.maximum.accumulate(bottoms[beside] + sizes[beside])
        starts = np.concatenate(([0], -(-ends // block.align) * block.align))
        has_room = starts[:-1] + block.size <= bottoms[beside]
        bottoms[number] = starts[has_room.argmax() if has_room.any() else -1]
        is_placed[number] = True
    return [int(offset) for offset in bottoms]
