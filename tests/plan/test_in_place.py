"""In place at the level of problems: which pairs go together, and what they make of lifetimes."""

from dataclasses import replace
from random import Random

import pytest
from every import every

from tirlite.plan import Choice, Fault, Placement, Problem, Request, check, lower_bound, solve
from tirlite.plan.in_place import chosen, grouped, handover, handovers
from tirlite.sizes import Dim


def test_a_handover_ends_one_life_and_begins_the_other():
    assert handover(((3, 7),), ((0, 4),)) == (3, 4)
    assert handover(((3, 7),), ((0, 5),)) == (3, 5), "a loop nest may take several points of time"
    assert handover(((3, 4),), ((0, 4),)) == (3, 4), "the destination may die at once"
    assert handover(((4, 7),), ((0, 4),)) is None, "they are never live together"
    assert handover(((3, 7),), ((0, 9),)) is None, "the source outlives the destination"
    assert handover(((0, 7),), ((1, 4),)) is None, "the destination was there before"
    assert handover(((3, 7),), ((0, 4), (8, 9))) is None, "the source is needed again"


def problem(*pairs, **changes):
    requests = (
        Request("a", changes.get("a", 64), (0, 3)),
        Request("b", 64, (0, 3)),
        Request("c", 32, (2, 5)),
        Request("d", 64, (4, 6)),
    )
    return Problem(requests, in_place=pairs)


def test_each_source_and_each_destination_is_in_one_pair():
    two_sources = problem(("c", "a"), ("c", "b"))
    assert [each.pair for each in chosen(handovers(two_sources), int)] == [("c", "a")]


def test_what_saves_most_is_taken_first():
    assert [each.pair for each in chosen(handovers(problem(("c", "a"), ("c", "b"), a=16)), int)] == [("c", "b")]


def test_a_chain_is_one_group_with_the_larger_size_at_each_handover():
    chain = problem(("c", "a"), ("d", "c"))
    groups = grouped(chain.requests, chosen(handovers(chain), int))
    assert [[request.id for request in group.members] for group in groups] == [["a", "c", "d"], ["b"]]
    assert groups[0].pieces == (((0, 2), 64), ((2, 3), 64), ((3, 4), 32), ((4, 5), 64), ((5, 6), 64))


def test_handovers_of_one_chain_that_overlap_do_not_go_together():
    requests = (Request("a", 64, (0, 6)), Request("b", 64, (4, 6)), Request("c", 64, (5, 8)))
    overlapping = Problem(requests, in_place=(("b", "a"), ("c", "b")))
    assert [each.pair for each in chosen(handovers(overlapping), int)] == [("b", "a")]


def test_pairs_of_other_shapes_are_never_taken():
    requests = (
        Request("a", 64, (0, 3), "shared"),
        Request("b", 64, (0, 3), fixed=0),
        Request("c", 32, (2, 5)),
        Request("d", 64, (5, 6)),
    )
    assert handovers(Problem(requests, in_place=(("c", "a"), ("c", "b"), ("d", "c")))) == []


def chain(length, size=64):
    """Each request is made from the one before, element by element."""
    requests = tuple(Request(f"r{i}", size, (i, i + 2)) for i in range(length))
    return Problem(requests, in_place=tuple((f"r{i + 1}", f"r{i}") for i in range(length - 1)))


@pytest.mark.parametrize("strategy", ["tvm", "share", "pack"])
def test_a_chain_needs_the_bytes_of_one(strategy):
    plan = solve(chain(6), strategy)
    assert plan.total == plan.lower_bound == plan.open_bound == 64
    assert len(plan.in_place) == 5
    assert plan.proved_optimal
    assert lower_bound(chain(6)) == 128


@pytest.mark.parametrize("strategy", ["none", "tvm", "share", "pack"])
def test_symbolic_chains_need_the_bytes_of_one(strategy):
    n = Dim("n")
    assert solve(chain(6, 4 * n), strategy).total == (24 * n if strategy == "none" else 4 * n)


def test_the_ancestor_takes_equal_kinds_and_sizes_alone():
    requests = (Request("a", 64, (0, 3), kind="int8"), Request("b", 64, (2, 5), kind="float32"))
    assert solve(Problem(requests, in_place=(("b", "a"),)), "tvm").total == 128
    smaller = (Request("a", 64, (0, 3)), Request("b", 60, (2, 5)))
    assert solve(Problem(smaller, in_place=(("b", "a"),)), "tvm").total == 124
    assert solve(Problem(smaller, in_place=(("b", "a"),)), "share").total == 64


def test_pack_gives_back_what_a_smaller_destination_does_not_need():
    requests = (Request("a", 64, (0, 3)), Request("b", 16, (2, 6)), Request("c", 48, (3, 6)))
    plan = solve(Problem(requests, in_place=(("b", "a"),)), "pack")
    assert plan.total == 64
    assert plan.in_place == (("b", "a"),)
    assert plan.decisions["b"].choice is Choice.IN_PLACE


def test_no_pair_is_taken_where_it_costs_more():
    requests = (
        Request("a", 100, (0, 3)),
        Request("b", 100, (2, 6)),
        Request("c", 100, (0, 2)),
        Request("d", 100, (3, 6)),
    )
    free = Problem(requests)
    assert solve(Problem(requests, in_place=(("b", "a"),)), "pack").total == solve(free, "pack").total == 200


def random_problem(seed):
    random = Random(seed)
    requests, pairs = [], []
    for i in range(random.randrange(2, 30)):
        low = random.randrange(15)
        live = ((low, low + random.randrange(1, 7)),)
        sources = [r for r in requests if handover(live, r.live)]
        for source in random.sample(sources, min(len(sources), 2)):
            pairs.append((f"r{i}", source.id))
        requests.append(Request(f"r{i}", random.choice([16, 32, 32, 64, 64, 100]), live, align=random.choice([1, 4])))
    return Problem(tuple(requests), in_place=tuple(pairs))


@every("seed", range(60))
def test_on_random_problems_bounds_and_strategies_are_in_order(seed):
    problem = random_problem(seed)
    pack, share, tvm = (solve(problem, name) for name in ("pack", "share", "tvm"))
    assert pack.open_bound <= pack.lower_bound <= pack.total <= share.total <= tvm.total
    assert pack.open_bound <= share.lower_bound
    assert pack.total <= solve(Problem(problem.requests), "pack").total


@every("seed", range(40))
def test_changed_pairs_are_rejected(seed):
    problem = random_problem(seed)
    plan = solve(problem, "pack")
    for place in range(len(plan.in_place)):
        fewer = replace(plan, in_place=plan.in_place[:place] + plan.in_place[place + 1 :])
        assert check(problem, fewer).fault is Fault.OVERLAP
        turned = tuple(pair[::-1] if i == place else pair for i, pair in enumerate(plan.in_place))
        assert check(problem, replace(plan, in_place=turned)).fault is Fault.IN_PLACE
        dst = plan.in_place[place][0]
        apart = {**plan.placements, dst: Placement(plan.placements[dst].pool, plan.placements[dst].offset + 4)}
        assert not check(problem, replace(plan, placements=apart))


def test_a_pair_in_place_is_explained_from_both_sides():
    problem = Problem((Request("a", 64, (0, 3)), Request("b", 64, (2, 5))), in_place=(("b", "a"),))
    plan = solve(problem, "share")
    told = "`b` overwrites `a` in place: a is live [0, 3), b [2, 5)"
    assert [plan.explain("a", "b"), plan.explain("b", "a")] == [told, told]


def test_charts_and_explanations_count_a_handover_once():
    requests = tuple(Request(name, 64, (time, time + 2)) for time, name in enumerate("abc"))
    plan = solve(Problem(requests, in_place=(("b", "a"), ("c", "b"))), "pack")
    assert (plan.total, plan.lower_bound) == (64, 64)
    assert "peak: 64 bytes live at time 0" in plan.to_svg()
    assert plan.explain().splitlines()[-1] == "peak of global: 64 bytes at time 0: a"
    later = solve(Problem((*requests, Request("d", 8, (1, 2))), in_place=(("b", "a"), ("c", "b"))), "pack")
    assert "peak: 72 bytes live at time 1" in later.to_svg()
    assert later.explain().splitlines()[-1] == "peak of global: 72 bytes at time 1: a, b in place of a, d"
