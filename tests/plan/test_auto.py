"""Strategy `auto`: whole slots where they are enough, offsets where these save, and some search where that helps."""

import pytest

from tirlite.plan import Pool, Problem, Request, solve
from tirlite.sizes import Dim


def test_slots_that_nothing_beats_are_kept():
    plan = solve(Problem((Request("a", 64, (0, 2)), Request("b", 64, (2, 4)))))
    assert (plan.strategy, plan.total, list(plan.pools)) == ("share", 64, ["a"])


def test_slots_that_are_no_worse_than_offsets_are_kept():
    n, m = Dim("n"), Dim("m")
    requests = (Request("a", 4 * n, (0, 2)), Request("b", 4 * m, (1, 4)), Request("c", 4 * n + 4, (3, 6)))
    plan = solve(Problem(requests))
    assert plan.strategy == "share"


def test_offsets_that_save_bytes_are_taken():
    requests = (Request("a", 60, (0, 2)), Request("b", 40, (0, 3)), Request("c", 100, (3, 5)), Request("d", 60, (2, 3)))
    plan = solve(Problem(requests))
    assert (plan.strategy, plan.total) == ("pack", 100)


def test_in_a_memory_with_a_capacity_padding_counts():
    requests = (Request("a", 4, (0, 2), pools=("p",)), Request("b", 60, (0, 2), align=64, pools=("p",)))
    assert solve(Problem(requests, (Pool("p", capacity=64),))).total == 64


HARD = Problem(
    tuple(
        Request(f"r{number}", size, live)
        for number, (size, live) in enumerate(
            [(3, (0, 4)), (2, (0, 2)), (5, (3, 8)), (4, (2, 5)), (2, (5, 9)), (3, (7, 9)), (1, (1, 7)), (4, (8, 11))]
        )
    )
)


@pytest.mark.parametrize("strategy", ["auto", "exact"])
def test_some_search_follows(strategy):
    assert solve(HARD, strategy).total <= solve(HARD, "pack").total
    assert solve(HARD, strategy, budget=0).total <= solve(HARD, "share").total


def test_the_plan_is_the_same_every_time():
    assert solve(HARD).placements == solve(HARD).placements
