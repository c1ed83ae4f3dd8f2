"""The same storage problem is planned once."""

from random import Random

import pytest

import tirlite as tl
from tirlite.plan import Plan, PlanCache, Pool, Problem, Repeatable, Request, check, solve
from tirlite.plan.verdict import Ok
from tirlite.sizes import Dim


def crowd(prefix="r", seed=1, count=12):
    """Requests with sizes, lifetimes and alignments of all kinds, in two pools, one pair in place among them."""
    random = Random(seed)
    requests = []
    for number in range(count):
        low = random.randrange(10)
        live = (low, low + random.randrange(1, 6))
        pools = random.choice([("p",), ("q",), ("p", "q")])
        requests.append(Request(f"{prefix}{number}", random.randrange(1, 40), live, align=4, pools=pools))
    return Problem(tuple(requests), (Pool("p", capacity=200), Pool("q")))


def symbolic(names=("n", "m"), prefix="r", **facts):
    n, m = (Dim(name, **facts) for name in names)
    sizes = (16 * n, 8 * m, 8 * n + 4 * m, 16 * n)
    return Problem(tuple(Request(f"{prefix}{i}", size, (i, i + 2)) for i, size in enumerate(sizes)))


@pytest.mark.parametrize("strategy", ["auto", "exact", "pack"])
def test_a_problem_with_other_names_gets_the_plan_it_would_have_been_given(strategy):
    others = [symbolic(("y", "z"), "s"), symbolic(("z", "y"))]
    for first, second in [(crowd(), crowd("other")), *((symbolic(), other) for other in others)]:
        cache = PlanCache()
        made = solve(first, strategy, budget=200, cache=cache)
        found = solve(second, strategy, budget=200, cache=cache)
        assert (made.cached, found.cached) == (False, True)
        alone = solve(second, strategy, budget=200)
        assert found == alone
        assert list(found.pools) == list(alone.pools)
        assert isinstance(check(second, found), Ok)
        assert (cache.counts.found, cache.counts.missed, cache.counts.plans) == (1, 1, 1)


def test_what_decides_about_a_plan_is_part_of_the_problem():
    base = Request("a", 8, (0, 2), align=4)
    requests = {
        "as it is": base,
        "size": Request("a", 12, (0, 2), align=4),
        "life": Request("a", 8, (0, 3), align=4),
        "align": Request("a", 8, (0, 2), align=8),
        "fixed": Request("a", 8, (0, 2), align=4, fixed=16),
        "kind": Request("a", 8, (0, 2), align=4, kind="float32"),
    }
    b = Request("b", 8, (2, 3))
    problems = [Problem((request, b)) for request in requests.values()]
    problems += [Problem((base, b), in_place=(("b", "a"),)), Problem((base, b), (Pool("global", capacity=64),))]
    problems += [symbolic(), symbolic(max=64), symbolic(multiple_of=8)]
    cache = PlanCache()
    for problem in problems:
        assert not solve(problem, cache=cache).cached
        assert solve(problem, cache=cache).cached
    assert not solve(problems[0], "exact", cache=cache).cached
    assert not solve(problems[0], "exact", budget=5, cache=cache).cached


def test_a_strategy_of_ones_own_is_asked_each_time_unless_it_is_said_to_be_repeatable():
    asked = []

    def mine(problem):
        asked.append(problem)
        return Plan.of(problem, {r.id: (f"p{i}", 0) for i, r in enumerate(problem.requests)})

    cache = PlanCache()
    for _ in range(2):
        assert not solve(symbolic(), mine, cache=cache).cached
    assert len(asked) == 2
    for _ in range(2):
        plan = solve(symbolic(), Repeatable(mine), cache=cache)
    assert (len(asked), plan.cached, plan.strategy) == (3, True, "given")


def test_those_that_were_not_asked_for_longest_go_first_and_the_largest_never_come():
    cache = PlanCache(requests=30)
    problems = [crowd(seed=seed, count=9) for seed in range(4)]
    for problem in problems[:3]:
        solve(problem, cache=cache)
    solve(problems[0], cache=cache)
    solve(problems[3], cache=cache)
    assert [solve(problems[i], cache=cache).cached for i in (0, 3, 1)] == [True, True, False]
    assert cache.counts.plans == 3
    for _ in range(2):
        assert not solve(crowd(count=40), cache=cache).cached


SOURCE = """
n = tl.dim("n")

@tl.kernel
def f(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    {name} = tl.alloc(tl.f32[n])
    for i in range(n):
        {name}[i] = x[i] + {number}
    for i in range(n):
        y[i] = {name}[n - 1 - i]
"""


def test_two_kernels_with_the_same_storage_are_planned_once():
    cache = PlanCache()
    sources = [SOURCE.format(name=name, number=number) for name, number in (("a", 1), ("other", 2))]
    kernels = [tl.compile(tl.parse(source), strategy="exact", budget=50, cache=cache) for source in sources]
    plans = [kernel.plan for kernel in kernels]
    assert [plan.cached for plan in plans] == [False, True]
    assert [request.id for request in plans[1].problem.requests] == ["other"]
    anew = tl.compile(tl.parse(sources[1]), strategy="exact", budget=50, cache=None).plan
    assert not anew.cached
    assert str(anew) == str(plans[1])  # what is printed does not depend on what was planned before
    assert anew.explain() == plans[1].explain()


def test_the_compiler_has_a_cache_of_its_own():
    kernels = [tl.compile(tl.parse(SOURCE.format(name="own", number=7)), budget=77, strategy="exact") for _ in range(2)]
    assert [kernel.plan.cached for kernel in kernels] == [False, True]
