"""Strategy `exact` beside what finds the optimum otherwise: all choices tried, and CP-SAT where it is installed.

What other strategies claim to have proved is held against the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import pytest
from every import every
from fewest_bytes import fewest_bytes, handover
from random_cases import IS_THOROUGH

from tirlite.diag import CapacityError, PlanError
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
    *(drawn(seed, 12, aligns=(1, 2, 8)) for seed in range(100, 108)),
    *(drawn(seed, 14, aligns=(1, 4), fixed=True) for seed in range(100, 108)),
    *(with_pairs(seed, 14) for seed in range(100, 104)),
][:: 1 if IS_THOROUGH else 2]


@pytest.mark.parametrize("problem", SMALL, ids=range(len(SMALL)))
def test_no_plan_needs_less(problem):
    plan = solve(problem, "exact")
    # Where alignment costs nothing, several arenas save nothing, and there is less to try.
    is_plain = all(request.align == 1 for request in problem.requests)
    assert plan.total == fewest_bytes(replace(problem, contiguous=is_plain))
    assert plan.proved_optimal


@pytest.mark.parametrize("problem", LARGER, ids=range(len(LARGER)))
def test_cp_sat_needs_no_less(problem):
    plan = solve(replace(problem, contiguous=True), "exact")
    assert plan.total == fewest_by_cp_sat(plan)


class Drawn:
    """A random problem with choices of all kinds, and with gaps, alignments, fixed offsets, capacities and copies."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.sizes = self.random.choice([range(1, 12), (4, 8, 12, 16), range(9), (7,)])
        self.aligns = self.random.choice([(1,), (1,), (1, 2, 4), (1, 8), (4,)])
        self.handing_over = self.random.choice([0, 0.5, 0.9])

    def problem(self, most: int) -> Problem:
        random = self.random
        requests: list[Request] = []
        for number in range(random.randint(2, most)):
            align = random.choice(self.aligns)
            requests.append(Request(f"r{number}", random.choice(self.sizes), self.live(requests), align=align))
        pools = [self.pool(number) for number in range(random.choice([1, 1, 1, 2, 2, 3]))]
        names = [pool.name for pool in pools]
        requests = [replace(r, pools=tuple(random.sample(names, random.randint(1, len(names))))) for r in requests]
        if random.random() < 0.25:
            place = random.randrange(len(requests))
            step = max(requests[place].align, *(pool.align for pool in pools))
            requests[place] = replace(requests[place], fixed=step * random.randrange(5))
        pairs = self.pairs(requests) if self.handing_over else ()
        return Problem(tuple(requests), tuple(pools), pairs, contiguous=random.random() < 0.35)

    def live(self, requests: Sequence[Request]) -> tuple[tuple[int, int], ...]:
        """A lifetime, with gaps; often it begins where that of another request ends."""
        random = self.random
        low = random.randrange(10)
        spans = [(low, low + random.randrange(1, 6))]
        if requests and random.random() < self.handing_over:
            low, high = random.choice(requests).live[-1]
            spans = [(random.randrange(low, high), high + random.randrange(4))]
        while random.random() < 0.25:
            low = spans[-1][1] + random.randrange(1, 3)
            spans.append((low, low + random.randrange(1, 4)))
        return tuple(spans)

    def pool(self, number: int) -> Pool:
        random = self.random
        capacity = random.choice([0, 8, 12, 16, 20, 24, 30, 40]) if random.random() < 0.4 else None
        return Pool(f"p{number}", align=random.choice([1, 1, 1, 4]), capacity=capacity, copies=random.choice([1, 1, 2]))

    def pairs(self, requests: Sequence[Request]) -> tuple[tuple[str, str], ...]:
        random = self.random
        both = [(b.id, a.id) for a in requests for b in requests if a is not b and handover(b, a)]
        return tuple(random.sample(both, random.randint(0, len(both))))


STRATEGIES = ("none", "tvm", "share", "coalesce", "group", "pack", "auto", "exact")


def planned(problem: Problem, strategy: str) -> Plan | None:
    """None where the strategy finds nothing that fits, or fixed offsets clash."""
    try:
        return solve(problem, strategy)
    except (CapacityError, PlanError):
        return None


@every("seed", range(20 if IS_THOROUGH else 10))
def test_exact_makes_the_best_of_all_choices_and_nobody_claims_more(seed):
    for number in range(6):
        problem = Drawn(100 * seed + number).problem(most=6)
        fewest = fewest_bytes(problem)
        plans = {name: planned(problem, name) for name in STRATEGIES}
        exact = plans["exact"]
        assert (exact is None) == (fewest is None)
        for plan in plans.values():
            assert plan is None or plan.open_bound <= fewest <= plan.total
            assert plan is None or plan.total == fewest or not plan.proved_optimal
            assert plan is None or plan.lower_bound <= fewest_bytes(problem, dict(plan.in_place))
        assert exact is None or (exact.total, exact.proved_optimal) == (fewest, True)
        assert_ordered([plans[name] for name in ("exact", "pack", "share")])


def assert_ordered(plans: Sequence[Plan | None]) -> None:
    """Each finds a plan where the next one does, of no more bytes."""
    for better, other in zip(plans, plans[1:], strict=False):
        assert other is None or (better is not None and better.total <= other.total)


def operators(seed: int, count: int, aligns: Sequence[int]) -> Problem:
    """Results of operators in a row: each reads the one before and another, and may take the place of either."""
    random = Random(seed)
    reads = [sorted({max(i - 1, 0), max(i - random.randrange(1, 6), 0)}) for i in range(1, count)]
    last = [max([i, *(user for user, row in enumerate(reads, 1) if i in row)]) for i in range(count)]
    sizes = [random.choice([4, 6, 10]) for _ in range(count)]
    requests = [Request(f"r{i}", sizes[i], (i, last[i] + 1), align=random.choice(aligns)) for i in range(count)]
    pairs = [(f"r{i}", f"r{j}") for i, row in enumerate(reads, 1) for j in row if last[j] == i]
    return Problem(tuple(requests), in_place=tuple(pairs), contiguous=len(aligns) > 1)


@pytest.mark.parametrize("aligns", [(1,), (1, 8)], ids=["bytes", "aligned"])
@pytest.mark.parametrize("seed", range(4))
def test_choices_of_twenty_operators_are_proved(seed, aligns):
    plan = solve(operators(seed, 20, aligns), "exact")
    assert plan.proved_optimal
    assert plan.total <= solve(plan.problem, "pack").total


@every("seed", range(100, 108))
def test_without_alignment_the_optimum_is_proved_and_kept_in_one_arena(seed):
    plan = solve(drawn(seed, 8), "exact")
    assert plan.proved_optimal
    assert len(plan.pools) == 1


@pytest.mark.parametrize("seed", range(6))
def test_each_of_several_pools_is_optimal(seed):
    parts = {name: drawn(seed + number, 6) for number, name in enumerate(("p", "q"))}
    requests = [replace(r, id=name + r.id, pools=(name,)) for name, part in parts.items() for r in part.requests]
    plan = solve(Problem(tuple(requests), (Pool("p"), Pool("q", copies=2))), "exact")
    best = {name: fewest_bytes(part) for name, part in parts.items()}
    assert plan.total == best["p"] + 2 * best["q"]
    assert plan.proved_optimal


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("make", [drawn, with_pairs])
def test_the_best_layout_at_one_binding_is_the_best_plan(make: Callable[[int, int], Problem], seed: int) -> None:
    """The command of `plan/one_layout.py`, which seeks one layout for many values, beside `exact`."""
    pytest.importorskip("ortools.sat.python.cp_model")
    from plan.one_layout import least_ratio

    best = solve(make(seed, 6), "exact").total
    assert least_ratio(make(seed, 6), [{}], [best], 20) == (1, 1)
    assert least_ratio(make(seed, 6), [{}], [best - 1], 20)[1] > 1
