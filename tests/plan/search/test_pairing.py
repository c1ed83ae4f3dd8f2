"""Pairs in place in one arena: what is claimed after few nodes holds; open pairs may overlap, plans may not."""

from itertools import pairwise
from random import Random

import pytest

from tirlite.plan import Problem, Request
from tirlite.plan.in_place import possible
from tirlite.plan.search.engine import Limits, PythonEngine
from tirlite.plan.search.pairing import least_arena

FAR = 1 << 40


def crowd(seed, count=14):
    """A pair, and requests around it whose alignments make proofs long."""
    random = Random(seed)
    requests = [Request("a", 5, (0, 3)), Request("b", 5, (2, 6))]
    for number in range(count):
        low = random.randrange(10)
        live = (low, low + random.randrange(1, 7))
        requests.append(Request(f"r{number}", random.randrange(1, 40), live, align=random.choice([1, 16])))
    return Problem(tuple(requests), in_place=(("b", "a"),))


def least(problem, nodes, below=FAR):
    return least_arena(problem.requests, 1, possible(problem), PythonEngine(), Limits(nodes), below)


@pytest.mark.parametrize("seed", [2, 3])
def test_a_search_that_ends_early_claims_no_more_than_a_longer_one_finds(seed):
    found = [least(crowd(seed), nodes) for nodes in (60, 600, 2000)]
    assert max(each.bound for each in found) <= min(each.joint.size for each in found)


def test_each_result_takes_the_place_of_the_one_before():
    requests = tuple(Request(f"r{i}", 8 - i % 2, (i, i + 2)) for i in range(12))
    problem = Problem(requests, in_place=tuple((b.id, a.id) for a, b in pairwise(requests)))
    found = least(problem, 1000)
    assert (found.joint.size, found.bound, len(found.joint.in_place)) == (8, 8, 11)
    assert set(found.joint.offsets.values()) == {0}


def test_two_that_want_one_place_do_not_lie_over_each_other():
    requests = (Request("a", 8, (0, 3)), Request("b", 8, (2, 5)), Request("c", 6, (2, 5)))
    found = least(Problem(requests, in_place=(("b", "a"), ("c", "a"))), 1000)
    assert (found.joint.size, found.bound, found.joint.in_place) == (14, 14, (("b", "a"),))


def test_nothing_of_fewer_bytes_than_are_needed_is_found():
    found = least(crowd(3), 5000, below=150)
    assert found.joint is None
    assert found.bound >= 150
