"""Assigns each request of a problem to the memory that it goes to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tirlite.plan.in_place import Group, chosen, grouped, handovers
from tirlite.plan.order import Order, samples
from tirlite.plan.pack.blocks import Block, block_of, sections_of
from tirlite.plan.pack.heuristics import first_fit, meetings
from tirlite.plan.pack.portfolio import pack_blocks
from tirlite.plan.problem import Problem
from tirlite.sizes import Size, upper_bound

_BUDGET = 4000


def assigned(problem: Problem) -> dict[str, str]:
    """For each request the memory it goes to: the first that it names, the next where that is full, and so on.

    Memories are filled in the order of the problem. Where one is too small, those that can live nowhere else come
    first, and of several orders of the others the one that turns away the fewest bytes is taken. Requests that may take
    each other's place go together. A symbolic size counts as its upper bound, and where there is none as its value at
    middling values of the dims.
    """
    if not any(len(request.memories) > 1 for request in problem.requests):
        return {request.id: request.memories[0] for request in problem.requests}
    order = Order(samples(problem.dims, 1))
    groups = grouped(problem.requests, chosen(handovers(problem), order.value))
    homes = [group.memories[0] for group in groups]
    moved = True
    while moved:
        moved = False
        for memory in problem.memories.values():
            inside = [number for number, home in enumerate(homes) if home == memory.name]
            onward = [_next(groups[number], memory.name) for number in inside]
            if memory.capacity is None or not any(onward):
                continue
            blocks = [block_of(groups[number], memory.align, partial(_bytes, order)) for number in inside]
            for place in _turned_away(blocks, [each is None for each in onward], memory.capacity):
                next_home = onward[place]
                if next_home is not None:
                    homes[inside[place]] = next_home
                    moved = True
    return {request.id: home for group, home in zip(groups, homes, strict=True) for request in group.members}


def _turned_away(blocks: Sequence[Block], stays: Sequence[bool], capacity: int) -> list[int]:
    """The numbers of the blocks that find no room; those that must stay are placed first."""
    offsets = pack_blocks(blocks, _BUDGET)
    if all(offset + block.size <= capacity for offset, block in zip(offsets, blocks, strict=True)):
        return []
    fixed = [i for i, block in enumerate(blocks) if block.fixed is not None and not stays[i]]
    beyond = [i for i in fixed if offsets[i] + blocks[i].size > capacity]
    if beyond:
        return beyond
    near = meetings(sections_of(blocks), sum(len(block.pieces) for block in blocks) ** 2)
    assert near is not None
    width = [sum(high - low for low, high, _ in block.pieces) for block in blocks]
    best: list[int] | None = None
    numbers = range(len(blocks))
    ranks: tuple[Callable[[int], tuple[int, int]], ...] = (
        lambda i: (offsets[i], 0),
        lambda i: (-blocks[i].size, -width[i]),
        lambda i: (-blocks[i].size * width[i], 0),
        lambda i: (-width[i], -blocks[i].size),
        lambda i: (blocks[i].size, -width[i]),
    )
    for rank in ranks:
        ranked = sorted(numbers, key=lambda i: (not stays[i], *rank(i), i))
        found = first_fit(blocks, near, ranked, limit=capacity)
        away = [i for i in numbers if found[i] < 0]
        if best is None or sum(blocks[i].size for i in away) < sum(blocks[i].size for i in best):
            best = away
    return best or []


def _next(group: Group, memory: str) -> str | None:
    """The memory that the group may live in after this one."""
    place = group.memories.index(memory) + 1
    return group.memories[place] if place < len(group.memories) else None


def _bytes(order: Order, size: Size) -> int:
    bound = upper_bound(size)
    return order.value(size) if bound is None else bound
