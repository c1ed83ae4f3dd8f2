"""The checker: it passes what is safe, and names what is not."""

from dataclasses import replace
from importlib import import_module
from random import Random

import pytest
from every import every

from tirlite.plan import Counterexample, Fault, Placement, Plan, PlannedPool, Pool, Problem, Request, check, solve
from tirlite.plan.layout import addresses
from tirlite.sizes import Dim, maximum
from tirlite.sizes.prove import is_at_most

check_module = import_module("tirlite.plan.check")  # the package has a function of this name

A, B, C = Request("a", 64, (0, 2), align=8), Request("b", 32, (1, 3), align=8), Request("c", 64, (2, 4), align=8)
THREE = Problem((A, B, C))
ARENA = {"a": ("arena", 0), "b": ("arena", 64), "c": ("arena", 0)}


def fault(problem, placements, **changes):
    plan = replace(Plan.of(problem, placements), **changes)
    verdict = check(problem, plan)
    return None if verdict else verdict.fault


def test_a_safe_plan_is_ok_and_true():
    verdict = check(THREE, Plan.of(THREE, ARENA))
    assert verdict
    assert not isinstance(verdict, Counterexample)


def test_an_overlap_names_requests_time_and_bytes():
    verdict = check(THREE, Plan.of(THREE, ARENA | {"b": ("arena", 56)}))
    assert not verdict
    assert verdict.fault is Fault.OVERLAP
    assert (verdict.requests, verdict.time, verdict.bytes) == (("a", "b"), 1, (56, 64))
    assert str(verdict) == "`a` and `b` live together at time 1 and share bytes: [0, 64) and [56, 88)"


def test_lifetimes_that_touch_do_not_overlap():
    assert fault(THREE, ARENA) is None


def test_gaps_are_honoured_exactly():
    gapped = Problem((Request("a", 64, ((0, 2), (6, 8))), Request("b", 64, (2, 6))))
    assert fault(gapped, {"a": ("x", 0), "b": ("x", 0)}) is None
    longer = Problem((Request("a", 64, ((0, 2), (6, 8))), Request("b", 64, (2, 7))))
    assert fault(longer, {"a": ("x", 0), "b": ("x", 0)}) is Fault.OVERLAP


def test_an_empty_request_overlaps_nothing():
    problem = Problem((Request("a", 64, (0, 2)), Request("b", 0, (0, 2))))
    assert fault(problem, {"a": ("x", 0), "b": ("x", 32)}) is None


@pytest.mark.parametrize(
    ("placements", "expected"),
    [
        ({"a": ("arena", 0), "b": ("arena", 64)}, Fault.MISSING),
        (ARENA | {"z": ("arena", 0)}, Fault.STRANGER),
        (ARENA | {"b": ("arena", 68)}, Fault.MISALIGNED),
        (ARENA | {"b": ("arena", -8)}, Fault.NEGATIVE),
    ],
)
def test_placements_are_looked_at_one_by_one(placements, expected):
    assert fault(THREE, placements) is expected


@pytest.mark.parametrize(
    ("pools", "expected"),
    [
        ({}, Fault.NO_POOL),
        ({"arena": PlannedPool("global", "global", 95, 8)}, Fault.OUTSIDE),
        ({"arena": PlannedPool("global", "global", 96, 4)}, Fault.MISALIGNED),
        ({"arena": PlannedPool("shared", "shared", 96, 8)}, Fault.WRONG_MEMORY),
        ({"arena": PlannedPool("global", "global", 96, 8)}, None),
        (
            {"arena": PlannedPool("global", "global", 96, 8), "idle": PlannedPool("global", "global", -8, 8)},
            Fault.NEGATIVE,
        ),
        (
            {"arena": PlannedPool("global", "global", 96, 8), "idle": PlannedPool("nowhere", "global", 8, 8)},
            Fault.WRONG_MEMORY,
        ),
    ],
)
def test_pools_are_looked_at_too(pools, expected):
    assert fault(THREE, {name: Placement(*where) for name, where in ARENA.items()}, pools=pools) is expected


def test_a_pool_of_an_unwanted_memory_is_refused():
    problem = Problem((Request("a", 64, (0, 2), pools=("p",)),), (Pool("p"), Pool("q")))
    assert fault(problem, {"a": ("x", 0)}, pools={"x": PlannedPool("q", "global", 64)}) is Fault.WRONG_MEMORY


def test_the_alignment_of_the_memory_holds_for_all_in_it():
    problem = Problem(
        (Request("a", 8, (0, 2), pools=("p",)), Request("b", 8, (0, 2), pools=("p",))), (Pool("p", align=32),)
    )
    assert fault(problem, {"a": ("p", 0), "b": ("p", 8)}) is Fault.MISALIGNED
    assert fault(problem, {"a": ("p", 0), "b": ("p", 32)}) is None


def test_a_fixed_offset_is_demanded():
    problem = Problem((Request("a", 8, (0, 2), fixed=16), Request("b", 8, (0, 2), fixed=0)))
    assert fault(problem, {"a": ("x", 16), "b": ("x", 0)}) is None
    assert fault(problem, {"a": ("x", 24), "b": ("x", 0)}) is Fault.NOT_FIXED
    assert fault(problem, {"a": ("x", 16), "b": ("y", 0)}) is Fault.NOT_FIXED


def test_a_total_that_lies_is_found():
    class Liar(Plan):
        total = 1

    plan = Plan.of(THREE, ARENA)
    assert check(THREE, Liar.from_layout(plan)).fault is Fault.TOTAL


def test_pools_of_one_memory_must_fit_together_with_their_alignment():
    requests = (Request("a", 10, (0, 2), align=8, pools=("p",)), Request("b", 8, (0, 2), align=8, pools=("p",)))
    assert fault(Problem(requests, (Pool("p", capacity=24),)), {"a": ("x", 0), "b": ("y", 0)}) is None
    assert fault(Problem(requests, (Pool("p", capacity=23),)), {"a": ("x", 0), "b": ("y", 0)}) is Fault.CAPACITY


def test_a_memory_holds_its_pools_where_they_stand():
    """What has a fixed offset stands first, whatever the order of the pools, and the next one is aligned behind it."""
    requests = (Request("a", 8, (0, 2), align=8, pools=("p",)), Request("b", 1, (1, 3), fixed=0, pools=("p",)))
    placements = {"a": ("x", 0), "b": ("y", 0)}
    for room in (9, 15):
        assert fault(Problem(requests, (Pool("p", capacity=room),)), placements) is Fault.CAPACITY
    problem = Problem(requests, (Pool("p", capacity=16),))
    assert fault(problem, placements) is None
    assert addresses(Plan.of(problem, placements)) == {"a": 8, "b": 0}


def test_symbolic_offsets_are_proved_apart():
    n, m = Dim("n"), Dim("m")
    problem = Problem((Request("a", 4 * n, (0, 2)), Request("b", 4 * m, (0, 3)), Request("c", 8 * n, (1, 3))))
    safe = {"a": ("x", 0), "b": ("x", 4 * n), "c": ("x", 4 * n + 4 * m)}
    assert fault(problem, safe) is None
    assert fault(problem, safe | {"b": ("x", 4 * m)}) is Fault.OVERLAP, "true at n <= m alone"
    assert fault(problem, safe | {"c": ("x", maximum(4 * n, 4 * m))}) is Fault.OVERLAP


def test_an_order_of_symbolic_offsets_that_samples_do_not_show_is_found():
    n = Dim("n", min=0, max=8)
    requests = [Request(f"r{i}", n * 1, (i, 20)) for i in range(6)]
    problem = Problem(tuple(requests))
    order = [3, 0, 5, 1, 4, 2]
    assert fault(problem, {f"r{i}": ("x", n * order[i]) for i in range(6)}) is None


def test_a_symbolic_request_must_lie_inside_for_all_values():
    n = Dim("n", max=16)
    problem = Problem((Request("a", 4 * n, (0, 2)),))
    assert fault(problem, {"a": ("x", 0)}, pools={"x": PlannedPool("global", "global", 64)}) is None
    assert fault(problem, {"a": ("x", 0)}, pools={"x": PlannedPool("global", "global", 63)}) is Fault.OUTSIDE


def random_problem(random):
    requests = []
    for i in range(random.randrange(4, 30)):
        low = random.randrange(30)
        requests.append(Request(f"r{i}", 8 * random.randrange(1, 40), ((low, low + random.randrange(1, 10)),), align=8))
    return Problem(tuple(requests))


def overlaps(problem, plan):
    """The meaning of safety, checked pair by pair."""
    for i, a in enumerate(problem.requests):
        for b in problem.requests[:i]:
            (pool, low), (other_pool, other_low) = plan.placements[a.id], plan.placements[b.id]
            together = any(s < y and x < t for s, t in a.live for x, y in b.live)
            if together and pool == other_pool and low < other_low + b.size and other_low < low + a.size:
                return True
    return False


@every("seed", range(60))
def test_on_random_arenas_it_agrees_with_looking_at_all_pairs(seed):
    random = Random(seed)
    problem = random_problem(random)
    placements = {r.id: (random.choice("xyz"), 8 * random.randrange(400)) for r in problem.requests}
    plan = Plan.of(problem, placements)
    assert bool(check(problem, plan)) is not overlaps(problem, plan)


def mutants(plan, random):
    """One change each that may break a plan."""
    names = list(plan.placements)
    a, b = random.sample(names, 2)
    here, there = plan.placements[a], plan.placements[b]
    region = plan.pools[here.pool]
    yield replace(plan, placements={**plan.placements, a: there})
    yield replace(plan, placements={**plan.placements, a: there, b: here})
    yield replace(plan, placements={**plan.placements, a: Placement(here.pool, here.offset + 8)})
    yield replace(plan, placements={**plan.placements, a: Placement(here.pool, here.offset + 4)})
    yield replace(plan, placements={name: where for name, where in plan.placements.items() if name != a})
    yield replace(plan, placements={**plan.placements, a + "'": here})
    yield replace(plan, pools={**plan.pools, here.pool: replace(region, size=region.size - 8)})
    yield replace(plan, pools={**plan.pools, here.pool: replace(region, align=4)})
    yield replace(plan, pools={name: pool for name, pool in plan.pools.items() if name != here.pool})


def harmless(problem, plan):
    """Whether a changed plan still does what it must."""
    if set(plan.placements) != set(problem.by_id) or overlaps(problem, plan):
        return False
    for request in problem.requests:
        pool, offset = plan.placements[request.id]
        region = plan.pools.get(pool)
        if region is None or offset % 8 or region.align % 8 or offset + request.size > region.size:
            return False
    return True


@every("seed", range(40))
def test_changed_plans_are_rejected_unless_they_are_harmless(seed):
    random = Random(seed)
    problem = random_problem(random)
    rejected = 0
    for strategy in ("none", "tvm", "share"):
        plan = solve(problem, strategy)
        for mutant in mutants(plan, random):
            verdict = check(problem, mutant)
            assert bool(verdict) is harmless(problem, mutant), verdict
            rejected += not verdict
    assert rejected >= 12


def test_sums_of_many_maxima_are_compared_part_by_part_up_to_a_limit(monkeypatch):
    """2 * n * m <= n * n + m * m is beyond the prover, and so each maximum of the one by each of the other."""
    low, high = 0, 0
    for number in range(6):
        n, m, k = (Dim(f"{letter}{number}") for letter in "nmk")
        low += maximum(2 * n * m, k)
        high += maximum(n * n + m * m, k)
    problem = Problem((Request("a", low, (0, 2)), Request("b", 4, (1, 3))))
    compared = []
    monkeypatch.setattr(
        check_module, "is_at_most", lambda a, b, budget: compared.append((a, b)) or is_at_most(a, b, budget)
    )
    verdict = check(problem, Plan.of(problem, {"a": ("arena", 0), "b": ("arena", high)}))
    assert verdict.fault is Fault.OVERLAP
    assert "not proved to lie apart" in str(verdict)
    assert 100 < len(compared) < 1000
