"""Solves the storage problem of a lowered graph as GraphPlanMemory does."""

from __future__ import annotations

from collections import defaultdict

from tirlite.graph.memory.storage import FreeList, Token
from tirlite.plan import Plan, Problem


def by_tokens(problem: Problem) -> Plan:
    """The plan in which each tensor takes a free storage whole where it is first written, until after its last use.

    A branch of an If keeps what the other one needs as well. A result is placed before the operands that die there are
    released, so nothing goes in place.
    """
    events = [(each.live[0][0], 1, number) for number, each in enumerate(problem.requests) if each.live]
    events += [(each.live[-1][1], 0, number) for number, each in enumerate(problem.requests) if each.live]
    free: dict[str, FreeList] = defaultdict(FreeList)
    taken: dict[int, Token] = {}
    count = 0
    for _, begins, number in sorted(events):
        request = problem.requests[number]
        memory = request.memories[0]
        if not begins:
            free[memory].put(taken[number])
            continue
        token = free[memory].take(request.size)
        if token is None:
            token = Token(count, request.size, 0)
            count += 1
        taken[number] = token
    places = {problem.requests[number].id: (f"storage {token.id}", 0) for number, token in taken.items()}
    return Plan.of(problem, places, "graph")
