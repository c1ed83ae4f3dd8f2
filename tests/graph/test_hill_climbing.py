"""A planner of a user's own on main: hill climbing over the order in which tensors are placed, as USMP had it."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.graph import Builder, compile  # noqa: A004
from tirlite.plan import Plan, Problem, Request, solve


def placed(order: list[Request]) -> dict[str, int]:
    """Each request at the lowest offset beside those placed before that live when it does."""
    offsets: dict[str, int] = {}
    for request in order:
        (low, high), *_ = request.live
        beside = [r for r in order if r.id in offsets and any(a < high and low < b for a, b in r.live)]
        ends = [0, *(-(-(offsets[r.id] + r.size) // request.align) * request.align for r in beside)]
        offsets[request.id] = min(
            end
            for end in ends
            if all(end + request.size <= offsets[r.id] or offsets[r.id] + r.size <= end for r in beside)
        )
    return offsets


def climbed(problem: Problem) -> Plan:
    """Neighbours in the order change places as long as that takes fewer bytes; what kernels need is left to `share`."""
    if len(problem.requests) < 2:
        return solve(problem, "share")

    def top(order: list[Request]) -> int:
        return max(placed(order)[request.id] + request.size for request in order)

    order = list(problem.requests)
    for place in [*range(len(order) - 1)] * 3:
        other = [*order[:place], order[place + 1], order[place], *order[place + 2 :]]
        order = min(order, other, key=top)
    memory = problem.requests[0].memories[0]
    return Plan.of(problem, {name: (memory, offset) for name, offset in placed(order).items()})


def test_main_runs_on_the_plan_of_a_hill_climber() -> None:
    g = Builder("net")
    y = g.input("x", tl.f32[2, 8])
    for width in (64, 16, 32, 48, 1):
        y = g.matmul(y, np.ones((y.shape[1], width), np.float32))
    compiled = compile(g.function(y), strategy=climbed)
    assert compiled.plan.total == compiled.plan.lower_bound == 4 * 2 * (64 + 16)
    x = np.arange(16, dtype=np.float32).reshape(2, 8)
    wanted = x.sum(1, keepdims=True) * 64 * 16 * 32 * 48
    np.testing.assert_array_equal(compiled(x), wanted)
