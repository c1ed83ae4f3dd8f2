"""Blocks and offsets in, the pairs that share a byte at some time out: what no packing may have."""

from __future__ import annotations

from tirlite.plan.blocks import Block


def overlapping(blocks: list[Block], offsets: list[int]) -> list[tuple[int, int]]:
    """The pairs of blocks that share a byte at some time."""
    return [
        (i, j)
        for i, one in enumerate(blocks)
        for j, other in enumerate(blocks[:i])
        if offsets[i] < offsets[j] + other.size and offsets[j] < offsets[i] + one.size
        if any(a.low < b.high and b.low < a.high for a in one.pieces for b in other.pieces)
    ]
