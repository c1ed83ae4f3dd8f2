"""Several memories: capacities, preference, and what is told where nothing fits."""

import pytest

from tirlite.diag import CapacityError
from tirlite.plan import Pool, Problem, Request, check, solve

FAST, SLOW = Pool("fast", capacity=100), Pool("slow")


def homes(*requests, pools=(FAST, SLOW)):
    problem = Problem(requests, pools)
    plan = solve(problem, "pack")
    assert check(problem, plan)
    return {name: plan.pools[place.pool].memory for name, place in plan.placements.items()}


def request(name, size, live=(0, 2), pools=("fast", "slow"), **more):
    return Request(name, size, live, pools=pools, **more)


def test_what_fits_stays_in_the_memory_that_it_prefers():
    assert homes(request("a", 60), request("b", 40)) == {"a": "fast", "b": "fast"}
    assert homes(request("a", 60), request("b", 60, (2, 4))) == {"a": "fast", "b": "fast"}


def test_what_does_not_fit_goes_to_the_next_memory():
    assert sorted(homes(request("a", 60), request("b", 60)).values()) == ["fast", "slow"]
    assert homes(request("a", 101)) == {"a": "slow"}


def test_what_can_live_nowhere_else_comes_first():
    assert homes(request("a", 80), request("b", 60, pools=("fast",))) == {"a": "slow", "b": "fast"}


def test_as_few_bytes_as_possible_are_turned_away():
    assert homes(request("a", 70), request("b", 40), request("c", 60)) == {"a": "slow", "b": "fast", "c": "fast"}


def test_a_full_second_memory_hands_on_to_the_third():
    pools = (Pool("fast", capacity=10), Pool("middle", capacity=10), Pool("slow"))
    names = ("fast", "middle", "slow")
    placed = homes(*(request(name, 10, pools=names) for name in "abc"), pools=pools)
    assert sorted(placed.values()) == ["fast", "middle", "slow"]


def test_offsets_use_a_capacity_that_whole_slots_do_not_fit():
    requests = (
        request("a", 60, (0, 2), ("fast",)),
        request("b", 40, (0, 3), ("fast",)),
        request("c", 60, (2, 4), ("fast",)),
        request("d", 100, (4, 5), ("fast",)),
    )
    problem = Problem(requests, (FAST,))
    with pytest.raises(CapacityError):
        solve(problem, "share")
    assert solve(problem, "pack").total == 100


def test_where_nothing_fits_the_buffers_at_the_peak_are_named():
    requests = (
        request("a", 60, pools=("fast",)),
        request("b", 60, pools=("fast",)),
        request("c", 90, (2, 4), ("fast",)),
    )
    with pytest.raises(CapacityError, match="need 120 bytes at time 0, when these are live: `a`, `b`"):
        solve(Problem(requests, (FAST,)), "pack")


def test_pairs_in_place_stay_together():
    pools = (Pool("fast", capacity=100), SLOW)
    problem = Problem((request("a", 80), request("b", 80, (1, 4))), pools, in_place=(("b", "a"),))
    plan = solve(problem, "pack")
    assert plan.total == 80
    assert plan.in_place == (("b", "a"),)
    assert [region.memory for region in plan.pools.values()] == ["fast"]


def test_a_fixed_offset_beyond_the_first_memory_goes_to_the_next():
    pools = (Pool("small", capacity=16), Pool("large", capacity=64))
    fixed = Request("a", 12, (0, 3), fixed=8, pools=("small", "large"))
    other = Request("b", 12, (1, 4), pools=("small", "large"))
    plan = solve(Problem((fixed, other), pools))
    assert plan.placements == {"a": ("large", 8), "b": ("small", 0)}


def test_an_offset_that_is_fixed_behind_the_end_is_told():
    problem = Problem((Request("a", 5, (0, 10), fixed=100),), (Pool("global", capacity=50),))
    with pytest.raises(CapacityError, match="when these are live: `a`; `a` is fixed at 100"):
        solve(problem)
