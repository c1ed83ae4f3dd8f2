"""Hung: blocks and the large ones among them in, how far below the top of an arena all others begin out.

The others are swept, and hang upside down from the top.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from tirlite.plan.pack.blocks import Block, Piece, Sections
from tirlite.plan.pack.sweep import sweep
from tirlite.record import record


@record
class Hung:
    """The numbers of large blocks, and of those that hang; how far below the top each of these begins, and how deep
    they reach in each section.
    """

    blocks: Sequence[Block]
    sections: Sections
    large: Sequence[int]
    numbers: Sequence[int]
    drops: Sequence[int]
    depth: Sequence[int]

    @classmethod
    def of(cls, blocks: Sequence[Block], sections: Sections, large: Iterable[int]) -> Hung:
        """All blocks but the large ones, swept. None has a fixed offset."""
        taken = dict.fromkeys(sorted(large))
        small = [number for number in range(len(blocks)) if number not in taken]
        whole = [_rounded(blocks[number]) for number in small]
        drops = [top + block.size for top, block in zip(sweep(whole, 0), whole, strict=True)]
        depth = [0] * len(sections.load)
        for drop, number in sorted(zip(drops, small, strict=True)):
            for low, high, _ in sections.spans[number]:
                depth[low:high] = [drop] * (high - low)
        return cls(blocks, sections, list(taken), small, drops, depth)

    @property
    def heights(self) -> list[int]:
        """For each section the bytes of the large blocks there, and of what hangs above them."""
        change = [0] * (len(self.depth) + 1)
        for number in self.large:
            for low, high, size in self.sections.spans[number]:
                change[low] += size
                change[high] -= size
        return [live + depth for live, depth in zip(accumulate(change[:-1]), self.depth, strict=True)]

    def offsets(self, bottoms: Sequence[int], top: int) -> list[int]:
        """Offsets of all blocks where the large ones lie so, and reach up to `top` with what hangs above them."""
        unit = max(block.align for block in self.blocks)
        end = -(-max(top, max(self.depth)) // unit) * unit
        offsets = [0] * len(self.blocks)
        for number, bottom in zip(self.large, bottoms, strict=True):
            offsets[number] = bottom
        for number, drop in zip(self.numbers, self.drops, strict=True):
            offsets[number] = end - drop
        return offsets


def _rounded(block: Block) -> Block:
    """The block with sizes that keep what follows it aligned, also upside down."""
    if block.align == 1:
        return block
    pieces = (Piece(low, high, -(-size // block.align) * block.align) for low, high, size in block.pieces)
    return Block(tuple(pieces), block.align)
