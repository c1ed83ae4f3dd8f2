"""Strategy `auto`: a problem in, a plan out that is as good as a fraction of a second of work makes it."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

from tirlite.plan.plan import Plan
from tirlite.plan.problem import Problem

if TYPE_CHECKING:
    from tirlite.plan.search.engine import Engine
    from tirlite.plan.search.limits import Listener

# Of more requests than this whole slots are not tried first.
_MANY = 256
# Of fewer, sharing takes no longer than to find out whether it is worth it.
_SEVERAL = 32
# Of more requests than this, pairs in place stay as `pack` has them.
_FEW = 64
# The part of the nodes that is for these, at most.
_PART = 8
# Nodes times requests: a node costs about as much as there are requests.
_WORK = 250_000
# Looks of `pack` for each second of a time limit, as far as its budget goes.
_LOOKS_PER_SECOND = 300_000


def auto(
    problem: Problem,
    budget: int | None = None,
    time_limit: float | None = None,
    engine: Engine | None = None,
    listener: Listener | None = None,
    threads: int = 1,
    *,
    stop_at_fit: bool = False,
) -> Plan:
    """The plan of `share` where none needs less, or else that of `pack`, or what some search makes of it.

    Whole slots come first, as they keep allocations apart, with their element types and shapes; not so where memories
    have capacities, in which the padding between slots counts. They are not tried where no slots can do with as little
    as `pack` needs. The search has `budget` nodes or `time_limit` seconds; without either as many nodes as take some
    tenths of a second, and none where these would be next to nothing. With `stop_at_fit` it ends where the plan fits.
    The plan tells which strategy made it.
    """
    start = perf_counter()
    count = len(problem.requests)
    if not count:
        return Plan.of(problem, {}, "share")
    from tirlite.plan.slot_bound import slot_bound
    from tirlite.plan.strategies.share import share

    is_small = count <= _MANY and all(pool.capacity is None for pool in problem.memories.values())
    bound = slot_bound(problem) if is_small and count >= _SEVERAL else None
    is_first = is_small and (bound is None or bound.slots == bound.live)
    slots = share(problem) if is_first else None
    if slots is not None and slots.proved_optimal:
        return slots
    # Most kernels come no further, and need not load these.
    from tirlite.plan.pack.portfolio import BUDGET
    from tirlite.plan.search.limits import Limits
    from tirlite.plan.strategies.choices import Choices, stands
    from tirlite.plan.strategies.exact import improved
    from tirlite.plan.strategies.pack import pack

    looks = BUDGET if time_limit is None else int(min(time_limit * _LOOKS_PER_SECOND, BUDGET))
    limits = Limits(0, time_limit, listener)
    packed = pack(problem, looks, engine, limits)
    if limits.ended_by_clock:
        return packed
    if bound is not None and not is_first and isinstance(packed.total, int) and packed.total >= bound.slots:
        slots = share(problem)
    plan = slots if slots is not None and slots.total == packed.total else packed
    nodes = _WORK // max(count, 1) if budget is None and time_limit is None else budget
    if plan.proved_optimal or (nodes is not None and nodes < count // 8) or (stop_at_fit and stands(plan)):
        return plan
    left = None if time_limit is None else max(time_limit - (perf_counter() - start), 0.0)
    # Where requests have a choice of memories, those stay that they prefer.
    is_bound = all(len(request.memories) == 1 for request in problem.requests)
    most = None if nodes is None else nodes // _PART
    choices = Choices.of(problem, apart=False, most=most) if is_bound and count <= _FEW else None
    found = improved(plan, nodes, left, engine, listener, threads, choices=choices, stop_at_fit=stop_at_fit)
    return found if found.total == plan.total else replace(found, strategy="exact")
