"""Assignment: a problem in, the memory that each of its requests goes to out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tirlite.plan.order import Order
from tirlite.plan.pack.blocks import Block, Piece, sections_of
from tirlite.plan.pack.first_fit import first_fit, meetings
from tirlite.plan.pack.portfolio import pack_blocks
from tirlite.plan.problem import Problem
from tirlite.plan.request import Request
from tirlite.plan.samples import samples
from tirlite.sizes import upper_bound

_BUDGET = 4000


def assigned(problem: Problem) -> dict[str, str]:
    """For each request the memory it goes to: the first that it names, the next where that is full, and so on.

    Memories are filled in the order of the problem. Where one is too small, those that can live nowhere else come
    first, and of several orders of the others the one that turns away the fewest bytes is taken. A symbolic size
    counts as its upper bound, and where there is none as its value at middling values of the dims.
    """
    homes = {request.id: request.memories[0] for request in problem.requests}
    if not any(len(request.memories) > 1 for request in problem.requests):
        return homes
    order = Order(samples(problem.dims, 1))
    for _ in problem.memories:
        moved = False
        for memory in problem.memories.values():
            requests = [request for request in problem.requests if homes[request.id] == memory.name]
            if memory.capacity is None or all(_next(request, memory.name) is None for request in requests):
                continue
            blocks = [_block(request, memory.align, order) for request in requests]
            for number in _turned_away(blocks, requests, memory.name, memory.capacity):
                onward = _next(requests[number], memory.name)
                if onward is not None:
                    homes[requests[number].id] = onward
                    moved = True
        if not moved:
            break
    return homes


def _turned_away(blocks: Sequence[Block], requests: Sequence[Request], memory: str, capacity: int) -> list[int]:
    """The numbers of the blocks that find no room."""
    offsets = pack_blocks(blocks, _BUDGET)
    if all(offset + block.size <= capacity for offset, block in zip(offsets, blocks, strict=True)):
        return []
    near = meetings(sections_of(blocks), len(blocks) ** 2)
    assert near is not None
    stays = [_next(request, memory) is None for request in requests]
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


def _next(request: Request, memory: str) -> str | None:
    """The memory that the request names after this one."""
    names = request.memories
    place = names.index(memory) + 1
    return names[place] if place < len(names) else None


def _block(request: Request, align: int, order: Order) -> Block:
    bound = upper_bound(request.size)
    size = order.value(request.size) if bound is None else bound
    pieces = tuple(Piece(low, high, size) for low, high in request.live)
    return Block(pieces, max(align, request.align), request.fixed)
