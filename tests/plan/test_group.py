"""Strategy `group`: who joins which group, and where the groups lie."""

from __future__ import annotations

from random import Random

import tirlite as tl
from tirlite.plan import Problem, Request, solve
from tirlite.sizes import Dim


def groups(plan: tl.plan.Plan) -> list[list[str]]:
    found: dict[object, list[str]] = {}
    for request in plan.problem.requests:
        found.setdefault(plan.placements[request.id].offset, []).append(request.id)
    return list(found.values())


def test_the_group_that_was_freed_last_is_taken_first():
    problem = Problem((Request("a", 64, (0, 2)), Request("b", 64, (0, 3)), Request("c", 64, (4, 5))))
    assert groups(solve(problem, "group")) == [["a"], ["b", "c"]]


def test_a_group_is_free_only_after_the_last_step_of_its_tensor():
    problem = Problem((Request("a", 64, (0, 2)), Request("b", 64, (1, 3)), Request("c", 64, (2, 4))))
    assert groups(solve(problem, "group")) == [["a", "c"], ["b"]]


def test_groups_lie_at_prefix_sums_of_aligned_sizes():
    problem = Problem((Request("a", 10, (0, 2)), Request("b", 65, (1, 3)), Request("c", 70, (2, 4))))
    plan = solve(problem, "group")
    assert [plan.placements[name].offset for name in "abc"] == [0, 128, 0]
    assert plan.total == 256


def test_sizes_have_no_say_in_the_groups():
    random = Random(1)
    for _ in range(50):
        lives = [(start, start + random.randint(1, 6)) for start in sorted(random.randrange(20) for _ in range(15))]
        sized = [
            Problem(tuple(Request(str(i), random.randint(1, 500), live) for i, live in enumerate(lives)))
            for _ in range(2)
        ]
        first, second = (solve(problem, "group") for problem in sized)
        assert [d.choice is tl.plan.Choice.OPENS for d in first.decisions.values()] == [
            d.choice is tl.plan.Choice.OPENS for d in second.decisions.values()
        ]
        assert len(set(first.placements.values())) == len(set(second.placements.values()))


def test_sizes_may_be_symbolic():
    n, m = Dim("n"), Dim("m")
    problem = Problem((Request("a", 4 * n, (0, 1)), Request("b", 4 * m, (1, 2))))
    plan = solve(problem, "group").at({n: 100, m: 200})
    assert plan.total == 832
