"""Gives each tensor of a storage problem a storage that it takes whole: the walk of GraphPlanMemory, in order of time.

Source: Relay, graph_mem_alloca.cc; branches and symbolic sizes are ours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import partial

from tirlite.graph.memory.storage import MATCH_RANGE, FreeList, Token
from tirlite.plan import Plan, Problem, Request
from tirlite.plan.request import Interval


def by_tokens(problem: Problem, match_range: int = MATCH_RANGE) -> Plan:
    """The plan in which each tensor takes a free storage where it is first written, until after its last use.

    A result is placed before the operands that die there are released, so nothing goes in place. What one branch of an
    If needs does not live in the other one, where its storage is free for what is gone before it is needed again.
    """
    events = [(low, 1, number) for number, each in enumerate(problem.requests) for low, _ in each.live]
    events += [(high, 0, number) for number, each in enumerate(problem.requests) for _, high in each.live]
    free: dict[str, FreeList] = defaultdict(partial(FreeList, match_range))
    awaited: dict[Token, list[Interval]] = defaultdict(list)  # when what has lain in a storage comes back to it
    taken: dict[int, Token] = {}
    for _, begins, number in sorted(events):
        request = problem.requests[number]
        those = free[request.memories[0]]
        if not begins:
            those.put(taken[number])
        elif number in taken:
            those.remove(taken[number])
        else:
            taken[number] = those.take(request.size, partial(_suits, awaited, request)) or Token(request.size)
            awaited[taken[number]] += request.live[1:]
    numbers: dict[Token, int] = {}
    for number in range(len(problem.requests)):
        numbers.setdefault(taken[number], len(numbers))
    places = {each.id: (f"storage {numbers[taken[number]]}", 0) for number, each in enumerate(problem.requests)}
    return Plan.of(problem, places, "graph")


def _suits(awaited: Mapping[Token, list[Interval]], request: Request, token: Token) -> bool:
    """Whether nothing comes back to the storage while the request lives."""
    return not any(low < end and start < high for low, high in awaited[token] for start, end in request.live)
