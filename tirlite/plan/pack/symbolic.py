"""Packing of symbolic sizes: groups of requests in, offsets that hold for all values of the dims out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd

from tirlite.plan.in_place import Group
from tirlite.plan.order import Order
from tirlite.plan.pack.blocks import Block, Piece, Sections, sections_of, top_of
from tirlite.plan.pack.portfolio import pack_blocks
from tirlite.plan.pack.stack import Bytes, Stack, Tower, height_of, stack
from tirlite.plan.samples import Binding
from tirlite.sizes import Proof, Size, prove_divides

# Groups, and sections that they live in, beyond which only multiples of one size are packed.
_MANY = 3000
_CROWD = 300_000
# Looks at blocks for each sample binding.
_BUDGET = 4000


def pack_groups(
    groups: Sequence[Group], aligns: Sequence[int], ranks: Sequence[int], bindings: Sequence[Binding], budget: int
) -> Iterator[Stack]:
    """Ways to pack groups of symbolic sizes, the one that seems best first; none where there are too many groups.

    An order in which to stack them comes out of packing at each binding, as if sizes were what they are there; that of
    the `ranks` is another one. Those that need least over the floor, on average over the bindings, come first.
    """
    compare = Order(bindings)
    unit = _unit(groups)
    if unit is not None:
        yield _multiples(groups, aligns, unit, budget)
        return
    if len(groups) > _MANY:
        return
    sampled = [_sections(groups, compare, number) for number in range(len(bindings))]
    if sum(high - low for rows in sampled[0].spans for low, high, _ in rows) > _CROWD:
        return
    given = tuple(sorted(range(len(groups)), key=lambda i: (ranks[i], i)))
    orders = list(dict.fromkeys([*_orders(groups, aligns, compare, bindings), given]))
    ranked = sorted(range(len(orders)), key=lambda i: (_cost(sampled, aligns, orders[i]), i))
    towers = [
        Tower(
            tuple(Bytes(low, high, size) for (low, high, _), (_, size) in zip(rows, group.pieces, strict=True)), align
        )
        for rows, group, align in zip(sampled[0].spans, groups, aligns, strict=True)
    ]
    for place in ranked:
        stacked = stack(towers, len(sampled[0].load), orders[place], compare)
        if stacked is not None:
            yield stacked


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


def _cost(sampled: Sequence[Sections], aligns: Sequence[int], order: Sequence[int]) -> float:
    """Bytes over the floor, summed over the bindings."""
    return sum(height_of(sections, aligns, order) / max(sections.floor, 1) for sections in sampled)


def _unit(groups: Sequence[Group]) -> Size | None:
    """The size that all sizes are constant multiples of, if there is one."""
    unit: Size | None = None
    for size in dict.fromkeys(size for group in groups for _, size in group.pieces):
        if isinstance(size, int):
            if size:
                return None
            continue
        factor = gcd(*size.terms.values())
        if unit is None:
            unit = size // factor
        elif size // factor != unit:
            return None
    return unit


def _multiples(groups: Sequence[Group], aligns: Sequence[int], unit: Size, budget: int) -> Stack:
    """Groups whose sizes are multiples of a unit are packed as numbers."""
    power = 1
    while power < max(aligns) and prove_divides(2 * power, unit) is Proof.YES:
        power *= 2
    count = {size: 0 if isinstance(size, int) else gcd(*size.terms.values()) for g in groups for _, size in g.pieces}
    blocks = [
        Block(tuple(Piece(low, high, count[size]) for (low, high), size in group.pieces), max(1, align // power))
        for group, align in zip(groups, aligns, strict=True)
    ]
    offsets = pack_blocks(blocks, budget)
    return Stack(tuple(offset * unit for offset in offsets), top_of(blocks, offsets) * unit)
