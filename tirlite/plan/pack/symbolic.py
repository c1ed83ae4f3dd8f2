"""Packing of symbolic sizes: groups of requests in, offsets that hold for all values of the dims out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tirlite.plan.in_place import Group
from tirlite.plan.order import Order
from tirlite.plan.pack.blocks import Block, Piece, Sections, sections_of, top_of
from tirlite.plan.pack.portfolio import pack_blocks
from tirlite.plan.pack.stack import Bytes, Stack, Tower, height_of, stack
from tirlite.plan.samples import Binding
from tirlite.plan.scale import Scale
from tirlite.record import record

# Groups, and sections that they live in, beyond which only multiples of one size are packed.
_MANY = 3000
_CROWD = 300_000
# Looks at blocks for each sample binding.
_BUDGET = 4000
# Orders that are worked out for all values of the dims.
_TRIES = 3


@record
class Slots:
    """Storage shared whole: the number of the slot of each group, and the bytes of all at each sample binding."""

    ranks: Sequence[int]
    totals: Sequence[int]


def pack_groups(
    groups: Sequence[Group], aligns: Sequence[int], slots: Slots, bindings: Sequence[Binding], budget: int
) -> Iterator[tuple[Stack, bool]]:
    """Ways to pack groups of symbolic sizes, the one that seems best first; none where there are too many groups.

    With each comes whether it is known to need no more than the slots, at any binding. An order in which to stack the
    groups comes out of packing at each binding, as if sizes were what they are there. Those come first that need least
    over the floor, on average over the bindings. The order of the slots comes last: a group then rests on nothing that
    reaches into its own slot, so it needs no more than they do, unless alignment costs something.
    """
    compare = Order(bindings)
    scale = Scale.of((size for group in groups for _, size in group.pieces), max(aligns))
    if scale is not None:
        yield _multiples(groups, aligns, scale, budget), False
        return
    if len(groups) > _MANY:
        return
    sampled = [_sections(groups, compare, number) for number in range(len(bindings))]
    if sum(high - low for rows in sampled[0].spans for low, high, _ in rows) > _CROWD:
        return
    towers = [
        Tower(
            tuple(Bytes(low, high, size) for (low, high, _), (_, size) in zip(rows, group.pieces, strict=True)), align
        )
        for rows, group, align in zip(sampled[0].spans, groups, aligns, strict=True)
    ]
    given = tuple(sorted(range(len(groups)), key=lambda i: (slots.ranks[i], i)))
    is_known = max(aligns) == 1 and all(len(group.members) == 1 for group in groups)
    for order in [*_ranked(sampled, aligns, _orders(groups, aligns, compare, bindings), slots.totals), given]:
        stacked = stack(towers, len(sampled[0].load), order, compare)
        if stacked is not None:
            yield stacked, order == given and is_known


def _ranked(
    sampled: Sequence[Sections], aligns: Sequence[int], orders: Iterable[tuple[int, ...]], limits: Sequence[int]
) -> list[tuple[int, ...]]:
    """The few best orders of those that stay within the limits at all bindings."""
    costs: list[tuple[float, int, tuple[int, ...]]] = []
    for number, order in enumerate(dict.fromkeys(orders)):
        tops = [height_of(sections, aligns, order) for sections in sampled]
        if all(top <= limit for top, limit in zip(tops, limits, strict=True)):
            cost = sum(top / max(sections.floor, 1) for top, sections in zip(tops, sampled, strict=True))
            costs.append((cost, number, order))
    return [order for _, _, order in sorted(costs)[:_TRIES]]


def _blocks(groups: Sequence[Group], aligns: Sequence[int], compare: Order, number: int) -> list[Block]:
    """The groups as they are at the sample binding of that number."""
    return [
        Block(tuple(Piece(low, high, compare.values(size)[number]) for (low, high), size in group.pieces), align)
        for group, align in zip(groups, aligns, strict=True)
    ]


def _sections(groups: Sequence[Group], compare: Order, number: int) -> Sections:
    return sections_of(_blocks(groups, [1] * len(groups), compare, number))


def _orders(
    groups: Sequence[Group], aligns: Sequence[int], compare: Order, bindings: Sequence[Binding]
) -> Iterator[tuple[int, ...]]:
    for number in range(len(bindings)):
        blocks = _blocks(groups, aligns, compare, number)
        offsets = pack_blocks(blocks, _BUDGET)
        yield tuple(sorted(range(len(groups)), key=lambda i: (offsets[i], i)))


def _multiples(groups: Sequence[Group], aligns: Sequence[int], scale: Scale, budget: int) -> Stack:
    """Groups whose sizes are multiples of one size are packed as numbers."""
    blocks = [
        Block(tuple(Piece(low, high, scale.count(size) or 0) for (low, high), size in group.pieces), scale.align(align))
        for group, align in zip(groups, aligns, strict=True)
    ]
    offsets = pack_blocks(blocks, budget)
    return Stack(tuple(offset * scale.unit for offset in offsets), top_of(blocks, offsets) * scale.unit)
