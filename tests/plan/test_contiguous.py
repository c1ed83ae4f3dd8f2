"""Contiguous problems: each memory is one arena, so that the padding of alignment counts, and can be proved needed."""

from dataclasses import replace
from io import StringIO
from itertools import permutations
from random import Random

import pytest
from every import every

from tirlite.plan import Plan, PlanCache, Pool, Problem, Request, lower_bound, read_csv, solve, write_csv
from tirlite.plan.report.chart import chart_of

ALIGNED = """\
id,lower,upper,size,alignment
a,0,3,10,64
b,1,4,10,64
c,2,9,30,64
"""


def end_of(problem: Problem, plan: Plan) -> int:
    """The end of the offsets in the table of the plan."""
    rows = [line.split(",") for line in write_csv(problem, plan).splitlines()[1:]]
    return max(int(row[-1]) + request.size for row, request in zip(rows, problem.requests, strict=True))


@pytest.mark.parametrize("strategy", ["auto", "exact", "none", "pack", "share", "tvm"])
def test_the_total_is_where_the_offsets_of_a_table_end(strategy):
    problem = read_csv(StringIO(ALIGNED))
    plan = solve(problem, strategy)
    assert plan.total == end_of(problem, plan)


def test_padding_that_no_order_can_do_without_is_part_of_the_bound():
    problem = read_csv(StringIO(ALIGNED))
    assert lower_bound(problem) == 64 + 64 + 10
    plan = solve(problem)
    assert plan.total == 138
    assert plan.proved_optimal


def test_apart_each_other_storage_needs_no_padding():
    problem = Problem(read_csv(StringIO(ALIGNED)).requests)
    assert lower_bound(problem) == solve(problem).total == 50


def test_the_alignment_of_a_memory_counts_like_that_of_requests():
    text = "id,lower,upper,size\na,0,2,10\nb,1,3,20\n"
    assert lower_bound(read_csv(StringIO(text), pools=[Pool("global", align=32)])) == 42


def test_less_aligned_buffers_fill_padding():
    text = "id,lower,upper,size,alignment\na,0,2,10,64\nb,0,2,10,64\nc,0,2,54,1\n"
    problem = read_csv(StringIO(text))
    assert lower_bound(problem) == solve(problem, "exact").total == 74


def test_a_chart_shows_the_addresses():
    chart = chart_of(solve(read_csv(StringIO(ALIGNED)), "none"), 138)
    assert [(box.bottom, box.top) for box in chart.rectangles] == [(0, 10), (64, 74), (128, 158)]


def test_json_keeps_it():
    problem = read_csv(StringIO(ALIGNED))
    plan = solve(problem, "none")
    assert Problem.from_json(problem.to_json()).contiguous
    assert Plan.from_json(plan.to_json()).total == plan.total
    assert Plan.from_json(plan.to_json()).to_json() == plan.to_json()


def drawn(seed: int) -> Problem:
    """Few requests of odd sizes, alignments that cost bytes, sometimes a gap, an aligned memory, or a fixed offset."""
    random = Random(seed)
    requests = []
    for number in range(random.randrange(2, 7)):
        low = random.randrange(8)
        live = [(low, low + random.randrange(1, 6))]
        if random.random() < 0.3:
            live.append((live[0][1] + 1, live[0][1] + 3))
        requests.append(
            Request(f"r{number}", random.randrange(1, 40), tuple(live), align=random.choice((1, 2, 4, 8, 16)))
        )
    if random.random() < 0.2:
        requests[0] = replace(requests[0], fixed=16 * random.randrange(3))
    return Problem(tuple(requests), (Pool("global", align=random.choice((1, 1, 4))),), contiguous=True)


def meet(one: Request, other: Request) -> bool:
    return any(a < d and c < b for a, b in one.live for c, d in other.live)


def fewest(problem: Problem) -> int:
    """The least end of all orders, in each of which a request rests on what came before it."""
    requests, least = problem.requests, problem.pools[0].align
    met = [[meet(one, other) for other in requests] for one in requests]
    best = 1 << 30
    for order in permutations(range(len(requests))):
        tops: dict[int, int] = {}
        for i in order:
            align = max(requests[i].align, least)
            offset = -(-max((top for j, top in tops.items() if met[i][j]), default=0) // align) * align
            if requests[i].fixed is not None:
                if offset > requests[i].fixed:
                    break
                offset = requests[i].fixed
            tops[i] = offset + requests[i].size
        else:
            best = min(best, max(tops.values()))
    return best


@every("seed", range(40))
def test_exact_is_what_the_best_order_needs_and_the_bound_is_true(seed):
    problem = drawn(seed)
    best = fewest(problem)
    plan = solve(problem, "exact")
    assert plan.total == best
    assert plan.proved_optimal
    assert lower_bound(problem) <= best
    for strategy in ("auto", "pack", "share", "none", "group"):
        other = solve(problem, strategy)
        assert other.total >= best
        assert other.total == best or not other.proved_optimal


def test_a_cache_tells_them_apart():
    cache, arena = PlanCache(), read_csv(StringIO(ALIGNED))
    assert solve(arena, "exact", cache=cache).lower_bound == 138
    apart = solve(Problem(arena.requests), "exact", cache=cache)
    assert not apart.cached
    assert apart.lower_bound == 50
