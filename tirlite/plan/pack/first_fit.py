"""Packs blocks by first fit: in an order, each takes the lowest room between those placed before it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tirlite.plan.pack.blocks import Block, Sections

# (other block, its bytes and ours in one piece of time that both live in)
Meeting = tuple[int, int, int]


def meetings(sections: Sections, most: int) -> list[list[Meeting]] | None:
    """For each block those that it meets; None if there are more than `most` of them."""
    found: list[list[Meeting]] = [[] for _ in sections.spans]
    births = sorted(
        (piece.low, piece.high, number, piece.size) for number, rows in enumerate(sections.spans) for piece in rows
    )
    live: list[tuple[int, int, int]] = []
    count = 0
    for low, high, number, size in births:
        live = [entry for entry in live if entry[0] > low]
        count += len(live)
        if count > most:
            return None
        for _, other, other_size in live:
            found[other].append((number, size, other_size))
        found[number] += [(other, other_size, size) for _, other, other_size in live]
        live.append((high, number, size))
    return found


def first_fit(
    blocks: Sequence[Block],
    near: Sequence[Sequence[Meeting]],
    order: Iterable[int],
    *,
    best: bool = False,
    limit: int | None = None,
) -> list[int]:
    """Offsets of the blocks, those with a fixed one first. With `best` the tightest room is taken, not the lowest.

    Each meeting with a block that is placed forbids the offsets between its bottom less our bytes and its top. What
    would end above `limit` is not placed, and has the offset -1.
    """
    offsets = [-1 if block.fixed is None else block.fixed for block in blocks]
    for number in order:
        if offsets[number] >= 0:
            continue
        align = blocks[number].align
        forbidden = [
            (offsets[other] - size, offsets[other] + other_size)
            for other, other_size, size in near[number]
            if offsets[other] >= 0 and size and other_size
        ]
        forbidden.sort()
        offset = (_tightest if best else _lowest)(forbidden, align)
        if limit is None or offset + blocks[number].size <= limit:
            offsets[number] = offset
    return offsets


def _lowest(forbidden: Sequence[tuple[int, int]], align: int) -> int:
    """The lowest multiple of `align` that lies strictly inside of no forbidden interval."""
    offset = 0
    for low, high in forbidden:
        if low >= offset:
            break
        if high > offset:
            offset = -(-high // align) * align
    return offset


def _tightest(forbidden: Sequence[tuple[int, int]], align: int) -> int:
    """The allowed offset with the least room above it."""
    offset, slack, found = 0, -1, 0
    for low, high in forbidden:
        if low >= offset and (slack < 0 or low - offset < slack):
            slack, found = low - offset, offset
        if high > offset:
            offset = -(-high // align) * align
    return found if slack >= 0 else offset
