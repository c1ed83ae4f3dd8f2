"""Strategy `exact` beside what finds the optimum otherwise: all orders tried, and CP-SAT where it is installed."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from random import Random

import pytest

from tirlite.plan import Plan, Pool, Problem, Request, solve


def drawn(seed: int, count: int, *, aligns: Sequence[int] = (1,), fixed: bool = False) -> Problem:
    """Requests of which some live twice, some are aligned, and one may have a fixed offset."""
    random = Random(seed)
    requests = []
    for number in range(count):
        low = random.randrange(2 * count)
        live = [(low, low + random.randrange(1, count))]
        if random.random() < 0.3:
            live.append((live[0][1] + 1, live[0][1] + 1 + random.randrange(1, 4)))
        align = random.choice(aligns)
        requests.append(Request(f"r{number}", random.randrange(1, 12), tuple(live), align=align))
    if fixed:
        first = requests[0]
        requests[0] = replace(first, fixed=first.align * random.randrange(4))
    return Problem(tuple(requests))


def with_pairs(seed: int, count: int) -> Problem:
    """A chain in which each may take the place of the one before, which is as large, and others around it."""
    random = Random(seed)
    chain = [Request(f"c{i}", 7, (2 * i, 2 * i + 3)) for i in range(3)]
    around = drawn(random.randrange(1000), count - len(chain)).requests
    return Problem((*chain, *around), in_place=(("c1", "c0"), ("c2", "c1")))


def meet(one: Sequence[Request], other: Sequence[Request]) -> bool:
    """Whether two groups of requests live at one time."""
    spans = [span for request in one for span in request.live], [span for request in other for span in request.live]
    return any(a[0] < b[1] and b[0] < a[1] for a in spans[0] for b in spans[1])


def grouped(plan: Plan) -> list[list[Request]]:
    """The requests, those together that take each other's place in the plan."""
    groups = {request.id: [request] for request in plan.problem.requests}
    for dst, src in sorted(plan.in_place):
        joint = groups[src] + groups[dst]
        groups.update((request.id, joint) for request in joint)
    return list({id(group): group for group in groups.values()}.values())


def fewest_by_trying(plan: Plan) -> int:
    """The least that one arena needs. In some order each rests on the ground or on one that came before it."""
    groups = grouped(plan)
    met = [[meet(one, other) for other in groups] for one in groups]
    best = sum(group[0].size + group[0].align + (group[0].fixed or 0) for group in groups)
    for order in permutations(range(len(groups))):
        tops: dict[int, int] = {}
        for i in order:
            head = groups[i][0]
            below = max((top for j, top in tops.items() if met[i][j]), default=0)
            offset = -(-below // head.align) * head.align
            if head.fixed is not None:
                if offset > head.fixed:
                    break
                offset = head.fixed
            tops[i] = offset + head.size
            if tops[i] >= best:
                break
        else:
            best = max(tops.values())
    return best


def fewest_by_cp_sat(plan: Plan) -> int:
    """The least that one arena needs, as CP-SAT proves it."""
    cp_model = pytest.importorskip("ortools.sat.python.cp_model")
    model = cp_model.CpModel()
    groups = grouped(plan)
    limit = sum(group[0].size + group[0].align + (group[0].fixed or 0) for group in groups)
    top = model.new_int_var(0, limit, "top")
    times, places = [], []
    for group in groups:
        head = group[0]
        step = model.new_int_var(0, limit // head.align, f"step of {head.id}")
        if head.fixed is not None:
            model.add(step * head.align == head.fixed)
        model.add(step * head.align + head.size <= top)
        last = -1
        for low, high in sorted(span for request in group for span in request.live):
            begin = max(low, last)
            last = max(last, high)
            if begin < high:
                times.append(model.new_fixed_size_interval_var(begin, high - begin, f"life of {head.id}"))
                places.append(model.new_fixed_size_interval_var(step * head.align, head.size, f"place of {head.id}"))
    model.add_no_overlap_2d(times, places)
    model.minimize(top)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return round(solver.objective_value)


SMALL = [
    *(drawn(seed, 7) for seed in range(12)),
    *(drawn(seed, 6, aligns=(1, 2, 8)) for seed in range(12)),
    *(drawn(seed, 6, aligns=(1, 4), fixed=True) for seed in range(12)),
    *(with_pairs(seed, 7) for seed in range(8)),
]
LARGER = [
    *(drawn(seed, 16) for seed in range(100, 108)),
    *(drawn(seed, 14, aligns=(1, 2, 8)) for seed in range(100, 108)),
    *(drawn(seed, 14, aligns=(1, 4), fixed=True) for seed in range(100, 108)),
    *(with_pairs(seed, 14) for seed in range(100, 104)),
]


def is_least(plan: Plan, fewest: int) -> bool:
    """Whether the plan needs what one arena needs, or less in several, which save what alignment costs in one."""
    return plan.total == fewest if len(plan.pools) == 1 else plan.total <= fewest


@pytest.mark.parametrize("problem", SMALL, ids=range(len(SMALL)))
def test_no_order_needs_less(problem):
    plan = solve(problem, "exact")
    assert is_least(plan, fewest_by_trying(plan))


@pytest.mark.parametrize("problem", LARGER, ids=range(len(LARGER)))
def test_cp_sat_needs_no_less(problem):
    plan = solve(problem, "exact")
    assert is_least(plan, fewest_by_cp_sat(plan))


@pytest.mark.parametrize("seed", range(100, 108))
def test_without_alignment_the_optimum_is_proved_and_kept_in_one_arena(seed):
    plan = solve(drawn(seed, 8), "exact")
    assert plan.proved_optimal
    assert len(plan.pools) == 1


@pytest.mark.parametrize("seed", range(6))
def test_each_of_several_pools_is_optimal(seed):
    parts = {name: drawn(seed + number, 6) for number, name in enumerate(("p", "q"))}
    requests = [replace(r, id=name + r.id, pools=(name,)) for name, part in parts.items() for r in part.requests]
    plan = solve(Problem(tuple(requests), (Pool("p"), Pool("q", copies=2))), "exact")
    best = {name: fewest_by_trying(solve(part, "exact")) for name, part in parts.items()}
    assert plan.total == best["p"] + 2 * best["q"]
    assert plan.proved_optimal
