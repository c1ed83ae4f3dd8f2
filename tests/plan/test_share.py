"""Strategy `share`: what it shares, and that it is never worse than `tvm`."""

from random import Random

import pytest
from every import every
from random_cases import groups

from tirlite.diag import PlanError
from tirlite.plan import Choice, Pool, Problem, Request, lower_bound, solve
from tirlite.sizes import Dim, evaluate


def slots(*requests, pools=()):
    plan = solve(Problem(requests, pools), "share")
    return sorted(" ".join(ids) for ids in plan.residents.values()), plan.total


def test_kinds_mix_and_the_alignment_is_the_strictest():
    problem = Problem(
        (Request("a", 64, (0, 1), align=4, kind="float32"), Request("b", 60, (1, 2), align=16, kind="int8"))
    )
    plan = solve(problem, "share")
    assert plan.total == 64
    assert plan.pools["a"].align == 16


def test_there_is_no_cliff_at_sixteen_times_the_size():
    assert slots(Request("a", 16, (0, 1)), Request("b", 4096, (1, 2))) == (["a b"], 4096)


def test_the_smallest_storage_with_room_is_taken():
    ids, total = slots(
        Request("a", 256, (0, 1)), Request("b", 128, (0, 1)), Request("c", 100, (1, 2)), Request("d", 256, (1, 2))
    )
    assert (ids, total) == (["a d", "b c"], 384)


def test_gaps_in_lifetimes_are_used():
    assert slots(Request("a", 64, ((0, 1), (5, 6))), Request("b", 64, (2, 4))) == (["a b"], 64)
    assert slots(Request("a", 64, ((0, 1), (5, 6))), Request("b", 64, (2, 6))) == (["a", "b"], 128)


def test_exclusive_branches_share_though_they_alternate():
    then, other = ((0, 2), (4, 6), (8, 10)), ((2, 4), (6, 8))
    assert slots(Request("a", 64, then), Request("b", 64, other)) == (["a b"], 64)


def test_a_plan_that_looks_ahead_beats_taking_what_comes():
    requests = [Request("small", 8, (2, 9)), Request("big", 100, (0, 1)), Request("again", 100, (3, 5))]
    assert slots(*requests) == (["big again", "small"], 108)


def test_a_constant_takes_symbolic_storage_that_has_room_by_the_facts():
    n = Dim("n", min=16)
    assert slots(Request("a", 4 * n, (0, 1)), Request("b", 64, (1, 2))) == (["a b"], 4 * n)


def test_a_symbolic_request_takes_constant_storage_that_has_room_by_the_facts():
    n = Dim("n", max=16)
    assert slots(Request("a", 64, (0, 1)), Request("b", 4 * n, (1, 2))) == (["a b"], 64)


def test_equal_symbolic_sizes_find_each_other():
    n, m = Dim("n"), Dim("m")
    ids, total = slots(
        Request("a", 4 * n, (0, 1)),
        Request("b", 4 * m, (0, 1)),
        Request("c", 4 * m, (1, 2)),
        Request("d", 4 * n, (1, 2)),
    )
    assert (ids, total) == (["a d", "b c"], 4 * n + 4 * m)


def test_the_smallest_storage_that_is_proved_to_have_room_is_taken():
    n, m = Dim("n"), Dim("m")
    ids, total = slots(
        Request("a", 4 * n * m, (0, 1)),
        Request("b", 8 * n, (0, 1)),
        Request("c", 4 * n, (1, 2)),
        Request("d", 4 * n * m, (1, 2)),
    )
    assert (ids, total) == (["a d", "b c"], 4 * n * m + 8 * n)


def test_what_cannot_be_compared_still_shares_and_costs_the_maximum():
    n, m = Dim("n"), Dim("m")
    assert str(slots(Request("a", 4 * n, (0, 1)), Request("b", 4 * m, (1, 2)))[1]) == "4*max(m, n)"


def test_a_slot_is_named_after_who_lives_in_it_first():
    plan = solve(Problem((Request("late", 100, (5, 6)), Request("early", 8, (0, 1)))), "share")
    assert list(plan.pools) == ["early"]


def test_fixed_requests_lie_in_one_pool_at_their_offsets():
    problem = Problem((Request("a", 64, (0, 2), fixed=0), Request("b", 64, (1, 3), fixed=64), Request("c", 32, (0, 1))))
    for strategy in ("none", "tvm", "share"):
        plan = solve(problem, strategy)
        assert plan.placements["a"] == ("a", 0)
        assert plan.placements["b"] == ("a", 64)
        assert plan.decisions["b"].choice is Choice.FIXED
        assert plan.total == 160


def test_copies_multiply_the_total():
    n = Dim("n")
    plan = solve(Problem((Request("a", 64, (0, 2), pools=("p",)),), (Pool("p", copies=n),)))
    assert plan.total == 64 * n
    assert plan.lower_bound == 64 * n
    assert plan.proved_optimal


def random_request(random, name, sizes):
    low = random.randrange(40)
    live = [(low, low + random.randrange(1, 12))]
    if random.random() < 0.3:
        low += random.randrange(12, 30)
        live.append((low, low + random.randrange(1, 6)))
    scope = random.choice(["global"] * 5 + ["shared", "local"])
    kind = random.choice(["float32"] * 3 + ["int8", "handle"])
    return Request(name, random.choice(sizes), tuple(live), scope, random.choice([1, 4, 64]), kind=kind)


def random_problem(seed, sizes):
    random = Random(seed)
    return Problem(tuple(random_request(random, f"r{i}", sizes) for i in range(random.randrange(1, 40))))


@every("seed", range(150))
def test_on_random_constant_problems_bound_share_tvm_and_none_are_in_order(seed):
    problem = random_problem(seed, [0, 1, 4, 5, 16, 60, 64, 100, 255, 256, 1000, 5000])
    share, tvm, none = (solve(problem, name).total for name in ("share", "tvm", "none"))
    assert lower_bound(problem) <= share <= tvm <= none


@pytest.mark.parametrize("seed", groups(40))
def test_on_random_symbolic_problems_they_are_in_order_at_every_binding(seed):
    n, m, k = Dim("n"), Dim("m", max=64), Dim("k", multiple_of=8)
    sizes = [4 * n, 8 * n, 4 * m, 4 * n * m, n * m + 4, 64, 1000, 4 * k, k * m, 4 * n + 4 * k, n * n, n // 4 + 1]
    problem = random_problem(seed, sizes)
    plans = [solve(problem, name) for name in ("share", "tvm", "none")]
    random, sizes = Random(seed), [lower_bound(problem), *(plan.total for plan in plans)]
    for _ in range(40):
        binding = {n: 2 ** random.randrange(9), m: random.randrange(1, 65), k: 8 * random.randrange(1, 40)}
        bound, *totals = [evaluate(size, binding) for size in sizes]
        assert bound <= totals[0] <= totals[1] <= totals[2]
        assert lower_bound(problem.at(binding)) >= bound


def ranged(match_range, *requests, in_place=()):
    plan = solve(Problem(requests, (), in_place), "share", match_range=match_range)
    return sorted(" ".join(ids) for ids in plan.residents.values()), plan.total


def test_padding_between_slots_makes_it_no_larger_than_the_baseline():
    problem = Problem(
        (
            Request("a", 2, (0, 1), align=4),
            Request("b", 3, (0, 1)),
            Request("c", 0, (1, 2)),
            Request("d", 1, (1, 2), align=16),
            Request("e", 0, (0, 1)),
        ),
        contiguous=True,
    )
    assert solve(problem, "share").total == solve(problem, "tvm").total == 17


def test_with_a_match_range_storage_of_about_that_size_is_taken_only():
    small, large = Request("a", 16, (0, 1)), Request("b", 4096, (1, 2))
    assert ranged(256, small, large) == (["a b"], 4096)
    assert ranged(16, small, large) == (["a", "b"], 4112)
    assert ranged(16, Request("a", 4096, (0, 1)), Request("b", 16, (1, 2))) == (["a", "b"], 4112)
    assert ranged(1, Request("a", 64, (0, 1)), Request("b", 64, (1, 2)), Request("c", 60, (2, 3)))[0] == ["a b", "c"]


def test_a_match_range_passes_over_what_fits_better_by_order_but_is_too_large():
    requests = Request("a", 4096, (0, 2)), Request("b", 16, (0, 2)), Request("c", 32, (2, 3))
    assert ranged(2, *requests) == (["a", "b c"], 4096 + 32)


def test_gaps_are_within_the_match_range_too():
    gapped, small = Request("a", 4096, ((0, 1), (5, 6))), Request("b", 16, (2, 4))
    assert ranged(None, gapped, small)[0] == ["a b"]
    assert ranged(16, gapped, small)[0] == ["a", "b"]


def test_match_range_zero_turns_reuse_off_but_for_pairs_in_place():
    n = Dim("n")
    assert ranged(0, Request("a", 64, (0, 1)), Request("b", 64, (1, 2)))[0] == ["a", "b"]
    assert ranged(0, Request("a", 4 * n, (0, 1)), Request("b", 4 * n, (1, 2)))[0] == ["a", "b"]
    pair = Request("a", 64, (0, 3)), Request("b", 64, (2, 4))
    assert ranged(0, *pair, in_place=(("b", "a"),))[0] == ["a b"]


def test_a_match_range_is_about_constant_sizes():
    n = Dim("n")
    assert ranged(1, Request("a", 4 * n, (0, 1)), Request("b", 400 * n, (1, 2)))[0] == ["a b"]


@pytest.mark.parametrize("match_range", [1, 4, 16, 64])
def test_each_request_takes_storage_within_the_match_range(match_range):
    random = Random(match_range)
    for _ in range(20):
        requests = []
        for number in range(30):
            low = random.randrange(40)
            requests.append(Request(str(number), 1 << random.randrange(14), (low, low + random.randint(1, 9))))
        problem = Problem(tuple(requests))
        plan = solve(problem, "share", match_range=match_range)
        for name, decision in plan.decisions.items():
            if decision.before is not None:
                need = problem.by_id[name].size
                assert need <= match_range * decision.before
                assert decision.before <= match_range * need
        if match_range >= 16:
            assert plan.total <= solve(problem, "tvm").total


@pytest.mark.parametrize("given", [-1, 1.5, "16", True])
def test_a_match_range_is_a_number(given):
    with pytest.raises(PlanError, match="plan-argument.*`match_range`"):
        solve(Problem(()), "share", match_range=given)


def test_other_strategies_have_no_match_range():
    with pytest.raises(PlanError, match=r"match-range-strategy(.|\n)*strategy `pack`"):
        solve(Problem(()), "pack", match_range=16)
