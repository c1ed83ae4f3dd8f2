"""Bundles: many blocks in, few blocks out that hold all of those that live alike, one above the other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from tirlite.plan.pack.blocks import Block, Piece
from tirlite.record import record

# Bundles of each lifetime: several, so that others can come between them.
_PARTS = 8


@record
class Bundles:
    """Bundles of `blocks` as blocks, and the numbers of what is in each, from below."""

    blocks: Sequence[Block]
    whole: Sequence[Block]
    members: Sequence[Sequence[int]]

    @classmethod
    def of(cls, blocks: Sequence[Block], least: int) -> Bundles | None:
        """None where there are not `least` times as many blocks as bundles. No block has a fixed offset."""
        alike: dict[tuple[object, int], list[int]] = {}
        for number, block in enumerate(blocks):
            alike.setdefault((tuple((low, high) for low, high, _ in block.pieces), block.align), []).append(number)
            if len(alike) * least > len(blocks):
                return None
        members = [part for numbers in alike.values() for part in _parts(numbers)]
        if len(members) * least > len(blocks):
            return None
        return cls(blocks, [_whole([blocks[number] for number in part]) for part in members], members)

    def offsets(self, found: Sequence[int]) -> list[int]:
        """The offset of each block where the bundles lie so."""
        offsets = [0] * len(self.blocks)
        for bottom, part in zip(found, self.members, strict=True):
            heights = accumulate((_step(self.blocks[number]) for number in part), initial=bottom)
            for number, offset in zip(part, heights, strict=False):
                offsets[number] = offset
        return offsets


def _parts(numbers: Sequence[int]) -> list[Sequence[int]]:
    step = -(-len(numbers) // _PARTS)
    return [numbers[start : start + step] for start in range(0, len(numbers), step)]


def _step(block: Block) -> int:
    """The bytes that a block takes in a bundle, so that the next one is aligned as well."""
    return -(-block.size // block.align) * block.align


def _whole(blocks: Sequence[Block]) -> Block:
    size = sum(map(_step, blocks[:-1])) + blocks[-1].size
    return Block(tuple(Piece(low, high, size) for low, high, _ in blocks[0].pieces), blocks[0].align)
