"""The lower bound of slots: no plan of whole slots needs less."""

from random import Random

from every import every

from tirlite.plan import Pool, Problem, Request, lower_bound, solve
from tirlite.plan.strategies.auto import SlotBound, slot_bound
from tirlite.sizes import Dim


def test_slots_are_as_large_as_what_lives_in_them_in_turn():
    problem = Problem(
        (Request("a", 8, (0, 2)), Request("b", 2, (0, 2)), Request("c", 5, (2, 4)), Request("d", 5, (2, 4)))
    )
    assert slot_bound(problem) == SlotBound(slots=8 + 5, live=10)
    assert solve(problem, "share").total == 13


def test_memories_count_as_often_as_they_exist():
    requests = (Request("a", 8, (0, 2), pools=("p",)), Request("b", 4, (0, 2), pools=("q",)))
    assert slot_bound(Problem(requests, (Pool("p", copies=3), Pool("q")))) == SlotBound(28, 28)


def test_what_leaves_a_choice_has_none():
    a, b = Request("a", 8, (0, 2)), Request("b", 8, (1, 3))
    assert slot_bound(Problem((a, b), in_place=(("b", "a"),))) is None
    assert slot_bound(Problem((Request("a", 8 * Dim("n"), (0, 2)),))) is None
    assert slot_bound(Problem((Request("a", 8, (0, 2), fixed=0),))) is None
    assert slot_bound(Problem((Request("a", 8, (0, 2), pools=("p", "q")),), (Pool("p"), Pool("q")))) is None


@every("seed", range(20))
def test_no_plan_of_slots_needs_less(seed):
    random = Random(seed)
    requests = []
    for number in range(random.randrange(1, 60)):
        low = random.randrange(30)
        live = [(low, low + random.randrange(1, 9))]
        if random.random() < 0.2:
            live.append((live[0][1] + 2, live[0][1] + 4))
        requests.append(Request(f"r{number}", random.choice((1, 2, 3, 4, 8)), tuple(live)))
    problem = Problem(tuple(requests))
    bound = slot_bound(problem)
    assert bound is not None
    assert bound.live == lower_bound(problem) <= bound.slots <= solve(problem, "share").total
    whole, best = solve(problem, "share"), solve(problem)
    assert (best.strategy == "share") == (whole.total == best.total)
