"""Sizes that are multiples of one size: the problem is searched in numbers, and the plan holds for all values."""

from random import Random

import pytest

from tirlite.plan import Ok, Plan, Pool, Problem, Request, check, solve
from tirlite.plan.scale import Scale, unit_of
from tirlite.sizes import Dim

RING = {"a": (0, 2), "b": (1, 4), "c": (3, 6), "d": (5, 8), "e": ((0, 1), (7, 8))}


def test_what_all_sizes_are_multiples_of():
    n, m = Dim("n"), Dim("m")
    assert unit_of([8 * n * m, 12 * n * m, 0]) == n * m
    assert unit_of([4 * n + 8 * m, 8 * n + 16 * m]) == n + 2 * m
    assert unit_of([4 * n, 4 * m]) is None
    assert unit_of([4 * n, 64]) is None


def test_alignments_count_in_units():
    n = Dim("n", multiple_of=4)
    scale = Scale.of([6 * n, 2 * n], 64)
    assert scale is not None
    assert [scale.count(size) for size in (6 * n, 2 * n, 0, 7, n * n)] == [6, 2, 0, None, None]
    assert [scale.align(align) for align in (1, 4, 16)] == [1, 1, 4]


@pytest.mark.parametrize("seed", range(6))
def test_a_plan_over_one_size_is_optimal_at_every_binding(seed):
    """At each binding `exact` alone, on numbers, finds nothing smaller, and proves the same."""
    random = Random(seed)
    n, m = Dim("n"), Dim("m")
    requests = []
    for number in range(9):
        low = random.randrange(14)
        live = ((low, low + random.randrange(1, 6)),)
        requests.append(Request(f"r{number}", random.randrange(1, 12) * n * m, live))
    plan = solve(Problem(tuple(requests)), "exact")
    assert plan.proved_optimal
    for binding in ({n: 1, m: 1}, {n: 3, m: 7}, {n: 64, m: 1000}):
        bound = plan.at(binding)
        alone = solve(bound.problem, "exact")
        assert check(bound.problem, bound) == Ok()
        assert alone.proved_optimal
        assert bound.total == alone.total


def test_a_bound_above_what_is_live_is_proved_for_all_values():
    n = Dim("n")
    problem = Problem(tuple(Request(name, 4 * n, live) for name, live in RING.items()))
    plan = solve(problem, "exact")
    assert plan.proved_optimal
    assert plan.total == plan.lower_bound == plan.proved == 12 * n
    assert solve(problem, "pack").lower_bound == 8 * n
    assert plan.at({n: 5}).lower_bound == 60
    again = Plan.from_json(plan.to_json())
    assert (str(again.proved), again.proved_optimal) == (str(plan.proved), True)


def test_what_alignment_costs_is_not_proved():
    n = Dim("n")
    requests = tuple(Request(name, 3 * n, live, align=4) for name, live in RING.items())
    plan = solve(Problem(requests), "exact")
    assert plan.total.terms
    assert all(check(at.problem, at) == Ok() for at in (plan.at({n: value}) for value in range(1, 9)))
    aligned = Dim("k", multiple_of=4)
    requests = tuple(Request(name, 3 * aligned, live, align=4) for name, live in RING.items())
    assert solve(Problem(requests), "exact").total == 9 * aligned


def test_memories_with_units_of_their_own_are_summed():
    n, m = Dim("n"), Dim("m")
    requests = [
        Request(pool + name, 4 * size, live, pools=(pool,))
        for pool, size in (("p", n), ("q", m))
        for name, live in RING.items()
    ]
    plan = solve(Problem(tuple(requests), (Pool("p"), Pool("q", copies=2))), "exact")
    assert plan.proved_optimal
    assert plan.total == 12 * n + 24 * m
