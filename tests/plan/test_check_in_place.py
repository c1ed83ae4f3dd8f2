"""The checker on plans with pairs in place: it passes what is safe, and names what is not."""

from dataclasses import replace

import pytest

from tirlite.plan import Fault, Plan, Problem, Request, check, lower_bound
from tirlite.sizes import Dim

REQUESTS = (Request("a", 64, (0, 3)), Request("b", 64, (0, 3)), Request("c", 32, (2, 5)), Request("d", 64, (4, 6)))
CHAIN = Problem(REQUESTS, in_place=(("c", "a"), ("d", "c"), ("c", "b")))
PLACES = {"a": ("x", 0), "b": ("x", 64), "c": ("x", 0), "d": ("x", 0)}
TAKEN = (("c", "a"), ("d", "c"))


def fault(problem, placements, in_place):
    verdict = check(problem, Plan.of(problem, placements, in_place=in_place))
    return None if verdict else verdict.fault


def test_a_chain_of_pairs_at_one_offset_is_safe():
    plan = Plan.of(CHAIN, PLACES, in_place=TAKEN)
    assert check(CHAIN, plan)
    assert plan.total == plan.lower_bound == 128
    assert plan.open_bound == 128
    assert lower_bound(CHAIN) == 160


def test_without_the_pair_in_the_plan_it_is_an_overlap():
    assert fault(CHAIN, PLACES, TAKEN[:1]) is Fault.OVERLAP
    assert fault(CHAIN, PLACES, ()) is Fault.OVERLAP


@pytest.mark.parametrize(
    ("placements", "in_place", "words"),
    [
        (PLACES, (("d", "c"), ("c", "a"), ("d", "b")), "is not a candidate"),
        (PLACES, (("a", "c"),), "is not a candidate"),
        (PLACES, (("c", "a"), ("c", "b")), "shares its place with `a` and `b`"),
        (PLACES | {"c": ("x", 32)}, (("c", "a"),), "different offsets"),
        (PLACES | {"c": ("y", 0), "d": ("y", 0)}, TAKEN, "different offsets"),
    ],
)
def test_pairs_are_looked_at_one_by_one(placements, in_place, words):
    verdict = check(CHAIN, Plan.of(CHAIN, placements, in_place=in_place))
    assert verdict.fault is Fault.IN_PLACE
    assert words in str(verdict)


def test_two_destinations_of_one_source_are_refused():
    requests = (Request("a", 64, (0, 3)), Request("b", 64, (2, 3)), Request("c", 64, (2, 5)))
    problem = Problem(requests, in_place=(("b", "a"), ("c", "a")))
    assert fault(problem, dict.fromkeys("abc", ("x", 0)), problem.in_place) is Fault.IN_PLACE


def test_a_pair_that_is_live_together_otherwise_is_refused():
    problem = Problem((Request("a", 64, (0, 4)), Request("b", 64, (2, 3))), in_place=(("b", "a"),))
    assert fault(problem, {"a": ("x", 0), "b": ("x", 0)}, problem.in_place) is Fault.IN_PLACE


def test_what_is_taken_over_must_have_been_handed_on_before():
    requests = (Request("a", 64, (0, 6)), Request("b", 64, (4, 6)), Request("c", 64, (5, 8)))
    problem = Problem(requests, in_place=(("b", "a"), ("c", "b")))
    assert fault(problem, dict.fromkeys("abc", ("x", 0)), problem.in_place) is Fault.IN_PLACE


def test_at_the_handover_both_keep_their_distance_from_others():
    large, small = Request("a", 64, (0, 3)), Request("c", 32, (2, 5))
    problem = Problem((large, small, Request("e", 8, (2, 3)), Request("f", 8, (3, 4))), in_place=(("c", "a"),))
    safe = {"a": ("x", 0), "c": ("x", 0), "e": ("x", 64), "f": ("x", 32)}
    assert fault(problem, safe, problem.in_place) is None, "after the handover only the small one is there"
    assert fault(problem, safe | {"e": ("x", 32)}, problem.in_place) is Fault.OVERLAP


def test_symbolic_sizes_of_a_pair_need_not_be_comparable():
    n, m = Dim("n"), Dim("m")
    requests = (Request("a", 4 * n, (0, 3)), Request("c", 4 * m, (2, 5)), Request("e", 8, (2, 3)))
    problem = Problem(requests, in_place=(("c", "a"),))
    plan = Plan.of(problem, {"a": ("x", 8), "c": ("x", 8), "e": ("x", 0)}, in_place=problem.in_place)
    assert check(problem, plan)
    above = Plan.of(problem, {"a": ("x", 0), "c": ("x", 0), "e": ("x", 4 * n)}, in_place=problem.in_place)
    assert check(problem, above).fault is Fault.OVERLAP


def test_pairs_survive_json_and_binding():
    plan = Plan.of(CHAIN, PLACES, in_place=TAKEN)
    assert Plan.from_json(plan.to_json()).in_place == TAKEN
    assert plan.at({}).in_place == TAKEN
    assert not check(CHAIN, replace(plan, in_place=()))
