"""Strategy `exact`: optimal plans with proof, honest bounds without."""

from dataclasses import replace
from random import Random

import pytest
from random_cases import IS_THOROUGH

from tirlite.plan import Plan, Pool, Problem, Request, solve
from tirlite.plan.blocks import Block
from tirlite.plan.search.descent import minimise
from tirlite.plan.search.engine import Limits, PythonEngine
from tirlite.sizes import Dim


def crowd(seed, count=40):
    """Requests of odd sizes and mixed alignments."""
    random = Random(seed)
    requests = []
    for number in range(count):
        low = random.randrange(30)
        live = (low, low + random.randrange(1, 12))
        requests.append(Request(f"r{number}", random.randrange(1, 40), live, align=random.choice([1, 4, 16])))
    return Problem(tuple(requests))


# Each lives together with two others, in a ring of five: two bytes live at any time, and three are needed.
RING = {"a": (0, 2), "b": (1, 4), "c": (3, 6), "d": (5, 8), "e": ((0, 1), (7, 8))}
HARD = Problem(tuple(Request(name, 1, live) for name, live in RING.items()))


def test_a_plan_above_the_largest_live_sum_is_proved_optimal():
    plan = solve(HARD, "exact")
    assert plan.proved_optimal
    assert plan.gap == 0
    assert plan.total == plan.lower_bound == plan.proved == 3
    assert solve(HARD, "pack").lower_bound == 2
    assert Plan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize("seed", range(8 if IS_THOROUGH else 4))
def test_it_is_never_worse_than_pack_and_its_bound_holds(seed):
    problem = crowd(seed)
    plan = solve(problem, "exact", budget=2000)
    assert plan.lower_bound <= plan.total <= solve(problem, "pack").total
    assert plan.deterministic
    assert plan == solve(problem, "exact", budget=2000)


def test_a_time_limit_that_ends_the_search_is_told():
    problem = crowd(1, count=120)
    plan = solve(problem, "exact", time_limit=0.0)
    assert plan.deterministic is plan.proved_optimal


def test_a_plan_that_fits_is_enough_where_that_is_asked_for():
    requests = crowd(9, count=30).requests
    for capacity, stop_at_fit in ((210, True), (210, False), (203, True)):
        nodes = [0]
        plan = solve(
            Problem(requests, (Pool("global", capacity=capacity),)),
            *("exact", 1500),
            listener=lambda progress, nodes=nodes: nodes.append(progress.nodes),
            stop_at_fit=stop_at_fit,
        )
        assert plan.total <= capacity
        assert (max(nodes) == 0) is (capacity == 210 and stop_at_fit), "the plan of `pack` fits"


def test_a_search_ends_with_the_first_packing_that_fits():
    items = [Block.even(each.size, each.live, each.align) for each in crowd(9, count=30).requests]
    first, best = (Limits(1500, stop_at_fit=stop_at_fit) for stop_at_fit in (True, False))
    packings = [minimise(items, PythonEngine(), limits, wanted=230) for limits in (first, best)]
    assert packings[1].total <= packings[0].total <= 230
    assert first.used < best.used == 1500


def test_each_memory_is_searched_and_counts_its_copies():
    requests = tuple(replace(r, id=pool + r.id, pools=(pool,)) for r in HARD.requests for pool in ("p", "q"))
    plan = solve(Problem(requests, (Pool("p"), Pool("q", copies=3))), "exact")
    assert plan.proved_optimal
    assert plan.total == 3 + 3 * 3


def test_fixed_offsets_stay():
    problem = Problem((Request("a", 8, (0, 4), fixed=8), Request("b", 8, (0, 2)), Request("c", 8, (1, 5))))
    plan = solve(problem, "exact")
    assert plan.total == 24
    assert plan.placements["a"].offset == 8
    assert plan.proved_optimal


def test_what_alignment_costs_in_one_arena_is_saved_by_several():
    requests = (Request("a", 3, (1, 4), align=4), Request("b", 3, (0, 1), align=4), Request("c", 4, (0, 1), align=2))
    problem = Problem((*requests, Request("d", 2, (0, 2), align=2)))
    one = Plan.of(problem, {"a": ("x", 0), "b": ("x", 0), "c": ("x", 6), "d": ("x", 4)})
    several = Plan.of(problem, {"a": ("x", 0), "b": ("x", 0), "c": ("y", 0), "d": ("z", 0)})
    assert (one.total, several.total) == (10, 9)
    assert (solve(problem, "exact").total, solve(problem, "exact").proved_optimal) == (9, True)
    in_a_row = Problem(problem.requests, contiguous=True)
    assert (solve(in_a_row, "exact").total, solve(in_a_row, "exact").proved_optimal) == (10, True)


def test_what_is_proved_with_a_choice_of_memories_holds_for_all_of_them():
    pools = (Pool("p", capacity=2), Pool("q"))
    problem = Problem(tuple(replace(r, pools=("p", "q")) for r in HARD.requests), pools)
    plan = solve(problem, "exact")
    assert (plan.total, plan.proved_open, plan.proved_optimal) == (3, 3, True)


def test_a_memory_is_left_where_that_saves_bytes():
    pools = (Pool("fast"), Pool("slow"))
    both, slow = ("fast", "slow"), ("slow",)
    problem = Problem((Request("a", 8, (0, 2), pools=both), Request("b", 8, (2, 4), pools=slow)), pools)
    assert solve(problem, "pack").total == 16
    plan = solve(problem, "exact")
    assert (plan.total, plan.proved_optimal) == (8, True)


def test_of_plans_with_as_few_bytes_that_is_taken_which_turns_away_least():
    pools = (Pool("fast", capacity=10), Pool("slow"))
    sizes = {"a": 7, "b": 4, "c": 6}
    requests = tuple(Request(name, size, (0, 2), pools=("fast", "slow")) for name, size in sizes.items())
    plan = solve(Problem(requests, pools), "exact")
    homes = {name: plan.pools[place.pool].memory for name, place in plan.placements.items()}
    assert homes == {"a": "slow", "b": "fast", "c": "fast"}
    assert plan.proved_optimal


def test_a_plan_is_found_where_heuristics_find_none_that_fits():
    sizes = {"a": 7, "b": 6, "c": 5, "d": 4, "e": 3, "f": 2}
    pools = (Pool("p", capacity=14), Pool("q", capacity=13))
    requests = tuple(Request(name, size, (0, 2), pools=("p", "q")) for name, size in sizes.items())
    plan = solve(Problem(requests, pools), "exact")
    assert [plan.total, *sorted(region.size for region in plan.pools.values())] == [27, 13, 14]


def test_a_pair_that_saves_less_is_taken_where_it_goes_together_with_another():
    requests = (
        Request("a", 4, (2, 5)),
        Request("b", 8, (1, 5)),
        Request("c", 2, (2, 3)),
        Request("d", 4, (1, 5)),
    )
    problem = Problem(requests, in_place=(("a", "b"), ("d", "b"), ("a", "c"), ("a", "d")))
    assert solve(problem, "pack").total == 14
    plan = solve(problem, "exact")
    assert (plan.total, plan.proved_optimal) == (12, True)
    assert sorted(plan.in_place) == [("a", "c"), ("d", "b")]


def test_a_destination_of_another_size_gives_back_what_it_does_not_need():
    requests = (Request("a", 64, (0, 3)), Request("b", 16, (2, 6)), Request("c", 48, (3, 6)), Request("d", 9, (5, 8)))
    plan = solve(Problem(requests, in_place=(("b", "a"), ("d", "b"))), "exact")
    assert (plan.total, plan.proved_optimal) == (64, True)


def test_a_pair_in_place_lies_at_one_offset():
    requests = (Request("a", 8, (0, 3)), Request("b", 8, (2, 5)), Request("c", 4, (1, 4)))
    plan = solve(Problem(requests, in_place=(("b", "a"),)), "exact")
    assert plan.placements["a"].offset == plan.placements["b"].offset
    assert (plan.total, plan.lower_bound) == (12, 12)


def test_symbolic_sizes_are_left_as_pack_has_them():
    n = Dim("n")
    problem = Problem((Request("a", 4 * n, (0, 2)), Request("b", 8 * n, (1, 3)), Request("c", 4 * n, (2, 4))))
    assert solve(problem, "exact").total == solve(problem, "pack").total


def test_numbers_beyond_64_bits_are_planned_in_python():
    huge = 1 << 70
    plan = solve(Problem(tuple(replace(r, size=r.size * huge) for r in HARD.requests)), "exact")
    assert (plan.total, plan.proved_optimal) == (3 * huge, True)


def test_progress_is_told():
    heard = []
    solve(crowd(3), "exact", budget=500, listener=heard.append)
    assert heard
    assert all(each.bound <= each.total for each in heard)


@pytest.mark.parametrize("strategy", ["auto", "exact"])
def test_a_pair_stays_one_where_its_two_would_rather_be_in_different_memories(strategy):
    requests = (
        Request("a", 27, (0, 5), pools=("small", "large")),
        Request("b", 27, (1, 3), pools=("large",)),
        Request("c", 17, (2, 4), pools=("large", "small")),
        Request("d", 25, (3, 5), pools=("small", "large")),
        Request("e", 29, (4, 5), pools=("small", "large")),
    )
    pools = (Pool("small", capacity=18), Pool("large"))
    plan = solve(Problem(requests, pools, in_place=(("e", "a"), ("d", "c"))), strategy)
    assert ("e", "a") in plan.in_place
    assert plan.placements["e"] == plan.placements["a"]
