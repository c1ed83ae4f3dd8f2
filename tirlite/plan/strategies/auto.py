"""Strategy `auto` makes a plan as good as a fraction of a second of work makes it."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from itertools import zip_longest
from time import perf_counter
from typing import NamedTuple

from tirlite.plan.plan import Plan
from tirlite.plan.problem import Problem
from tirlite.plan.request import Request
from tirlite.plan.strategy import DEFAULT, Effort
from tirlite.record import replace

# The most requests for which whole slots are tried first.
_MANY = 256
# For fewer requests, `share` is as fast as the bound that says whether it is worth a try.
_SEVERAL = 32
# The most requests for which the pairs in place of `pack` are chosen anew.
_FEW = 64
# That choice gets at most one in this many nodes.
_PART = 8
# Nodes times requests, as the cost of a node grows with the number of requests.
_WORK = 250_000
# Looks of `pack` per second of a time limit, up to its budget.
_LOOKS_PER_SECOND = 300_000


def auto(problem: Problem, effort: Effort = DEFAULT) -> Plan:
    """The plan of `share` if no plan needs fewer bytes; else the plan of `pack`, improved by a short search.

    Whole slots are preferred, as they keep allocations apart, with their element types and shapes; but not where
    memories have capacities, as the padding between slots counts there. They are not tried where a bound shows that
    they need more bytes than `pack` does. Without limits the search has as many nodes as take some tenths of a second;
    there is none where that is next to nothing. The plan names the strategy that made it.
    """
    start = perf_counter()
    count = len(problem.requests)
    if not count:
        return Plan.of(problem, {}, "share")
    from tirlite.plan.strategies.share import share

    is_small = count <= _MANY and all(pool.capacity is None for pool in problem.memories.values())
    bound = slot_bound(problem) if is_small and count >= _SEVERAL else None
    is_first = is_small and (bound is None or bound.slots == bound.live)
    slots = share(problem) if is_first else None
    if slots is not None and slots.proved_optimal:
        return slots
    # Most kernels come no further, and need not load these.
    from tirlite.plan.pack.portfolio import BUDGET
    from tirlite.plan.search.engine import Limits
    from tirlite.plan.strategies.exact import Choices, improved, stands
    from tirlite.plan.strategies.pack import pack

    looks = BUDGET if effort.time_limit is None else int(min(effort.time_limit * _LOOKS_PER_SECOND, BUDGET))
    limits = Limits(0, effort.time_limit, effort.listener)
    packed = pack(problem, looks, effort.engine, limits)
    if limits.ended_by_clock:
        return packed
    if bound is not None and not is_first and isinstance(packed.total, int) and packed.total >= bound.slots:
        slots = share(problem)
    plan = slots if slots is not None and slots.total == packed.total else packed
    nodes = _WORK // count if effort.budget is None and effort.time_limit is None else effort.budget
    if plan.proved_optimal or (nodes is not None and nodes < count // 8) or (effort.stop_at_fit and stands(plan)):
        return plan
    # Where requests have a choice of memories, those stay that they prefer.
    is_bound = all(len(request.memories) == 1 for request in problem.requests)
    most = None if nodes is None else nodes // _PART
    choices = Choices.of(problem, apart=False, most=most) if is_bound and count <= _FEW else None
    found = improved(plan, replace(effort.since(start), budget=nodes), choices)
    return found if found.total == plan.total else replace(found, strategy="exact")


class SlotBound(NamedTuple):
    """Bytes that slots need at least, and the most that are live at one time."""

    slots: int
    live: int


def slot_bound(problem: Problem) -> SlotBound | None:
    """The bound of a problem of constant sizes that leaves no choices; None for all others."""
    if problem.in_place or any(r.fixed is not None or len(r.memories) > 1 for r in problem.requests):
        return None
    slots = live = 0
    for name, requests in problem.by_memory.items():
        copies = problem.memories[name].copies
        sizes = [request.size for request in requests if isinstance(request.size, int)]
        if len(sizes) < len(requests) or not isinstance(copies, int):
            return None
        bound = _bound(requests, sizes)
        slots += copies * bound.slots
        live += copies * bound.live
    return SlotBound(slots, live)


def _bound(requests: Sequence[Request], sizes: Sequence[int]) -> SlotBound:
    events = [(low, 1, size) for request, size in zip(requests, sizes, strict=True) for low, _ in request.live]
    events += [(high, 0, size) for request, size in zip(requests, sizes, strict=True) for _, high in request.live]
    live: list[int] = []  # negative sizes, so that the largest come first
    least: list[int] = []
    most, grown = 0, False
    for _, is_birth, size in sorted(events):
        if is_birth:
            insort(live, -size)
        else:
            if grown:
                least = list(map(min, zip_longest(least, live, fillvalue=0)))
                most = max(most, -sum(live))
            del live[bisect_left(live, -size)]
        grown = bool(is_birth)
    return SlotBound(-sum(least), most)
