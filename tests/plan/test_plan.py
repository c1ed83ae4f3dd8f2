"""Plans: figures, reports, JSON, and ways to make one."""

import copy
import json
import pickle
import re
import subprocess
import sys
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
import sympy
from every import every

import tirlite as tl
from tirlite.diag import CapacityError, InternalError, PlanError
from tirlite.plan import (
    Layout,
    PerShape,
    Plan,
    PlannedPool,
    Pool,
    Problem,
    Request,
    beside,
    check,
    lower_bound,
    offset_evaluator,
    parse_facts,
    read_csv,
    solve,
    write_csv,
)
from tirlite.plan.solve import BrokenStrategy
from tirlite.sizes import Dim, maximum

PROBLEM = Problem(
    (Request("a", 100, (0, 2)), Request("b", 50, (1, 4)), Request("c", 120, (2, 5)), Request("d", 60, (4, 6)))
)


def symbolic():
    n, m = Dim("n", max=512, multiple_of=8), Dim("m")
    requests = (Request("a", 4 * n * m, (0, 2)), Request("b", 4 * n, (1, 4)), Request("c", 8 * n * m, ((2, 3), (5, 6))))
    return Problem((*requests, Request("d", n // 3 + 64, (4, 6), align=64, kind="int8")), facts={"n": n}), n, m


def test_the_figures():
    plan = solve(PROBLEM, "none")
    assert (plan.total, plan.lower_bound, plan.proved_optimal) == (330, 180, False)
    assert plan.gap == pytest.approx(150 / 180)
    best = solve(PROBLEM)
    assert (best.total, best.gap, best.proved_optimal, best.strategy) == (180, 0.0, True, "share")
    assert best.deterministic
    assert best.sharers("a") == ("a", "c")


def test_the_gap_is_zero_where_nothing_is_needed():
    assert solve(Problem((Request("a", 0, (0, 1)),))).gap == 0.0
    assert solve(Problem(())).gap == 0.0


def test_a_symbolic_gap_is_told_where_it_is_decided():
    n, m = Dim("n"), Dim("m")
    pair = solve(Problem((Request("a", 4 * n, (0, 1)), Request("b", 8 * n, (1, 2)))))
    assert (pair.gap, pair.proved_optimal) == (0.0, True)
    apart = solve(Problem((Request("a", 4 * n, (0, 1)), Request("b", 4 * m, (1, 2)))), "none")
    assert (apart.gap, apart.proved_optimal) == (None, False)
    assert apart.at({n: 10, m: 10}).gap == 1.0


def test_it_prints_as_a_table():
    assert str(solve(PROBLEM)) == (
        "share: 180 bytes, lower bound 180, gap 0.0%\n"
        "pool  memory  bytes  align  requests\n"
        "----  ------  -----  -----  --------\n"
        "a     global    120      1  a c\n"
        "b     global     60      1  b d"
    )


def test_it_tells_who_shares_and_why():
    assert solve(PROBLEM).explain().splitlines()[:3] == [
        "a: 120 bytes in global, shared by 2",
        "    a: 100 bytes, live [0, 2); gets new storage: no free storage fits",
        "    c: 120 bytes, live [2, 5); reuses free storage of 100 bytes, which grows",
    ]
    assert solve(PROBLEM).explain("d").startswith("b: 60 bytes in global, shared by 2")


def test_it_tells_why_two_share_or_do_not():
    plan = solve(PROBLEM)
    assert plan.explain("a", "b") == "`a` and `b` are both live at time 1, so they lie in different pools"
    assert plan.explain("a", "c").startswith("`a` and `c` share `a`: a is live [0, 2), c [2, 5)")
    assert "other choices were preferred: a lies in `a` with c" in plan.explain("a", "d")
    assert "this strategy shares nothing" in solve(PROBLEM, "none").explain("a", "c")
    kinds = Problem((Request("x", 60, (0, 1), kind="float32"), Request("y", 64, (1, 2), kind="int8")))
    assert "grows no storage for another kind, float32 and int8" in solve(kinds, "tvm").explain("x", "y")
    scopes = Problem((Request("x", 64, (0, 1)), Request("y", 64, (1, 2), scope="shared")))
    assert "live in different memories: global, and shared" in solve(scopes).explain("x", "y")


def test_an_unknown_request_is_answered_with_the_nearest():
    plan = solve(Problem((Request("rows", 4, (0, 1)),)))
    with pytest.raises(PlanError, match="did you mean `rows`"):
        plan.explain("row")


def test_a_plan_by_hand_needs_placements_alone():
    plan = Plan.of(PROBLEM, {"a": ("x", 0), "b": ("x", 120), "c": ("x", 0), "d": ("x", 120)}, strategy="mine")
    assert check(PROBLEM, plan)
    assert (plan.total, plan.strategy, plan.pools["x"].memory) == (180, "mine", "global")
    assert "was placed there by the author of the plan" in plan.explain("a")


def test_a_pool_of_the_name_of_a_memory_lies_in_it():
    problem = Problem(
        (Request("a", 8, (0, 1), pools=("p", "q")), Request("b", 8, (0, 1), pools=("p",))), (Pool("p"), Pool("q"))
    )
    plan = Plan.of(problem, {"a": ("q", 0), "b": ("p", 0)})
    assert {name: pool.memory for name, pool in plan.pools.items()} == {"q": "q", "p": "p"}
    assert check(problem, plan)


def test_a_strategy_of_ones_own_is_a_function():
    def stack(problem):
        offset, placements = 0, {}
        for request in problem.requests:
            placements[request.id] = ("arena", offset)
            offset += request.size
        return Plan.of(problem, placements, strategy="stack")

    assert solve(PROBLEM, stack).total == 330
    with pytest.raises(PlanError, match=r"unsafe-plan.*`pile` is not safe: `a` and `b` live together at time 1"):
        solve(PROBLEM, lambda problem: Plan.of(problem, dict.fromkeys(problem.by_id, ("arena", 0)), strategy="pile"))


def test_a_broken_strategy_of_ours_is_an_internal_error():
    assert isinstance(BrokenStrategy("share", "`a` is not placed").error(), InternalError)


def test_an_unknown_strategy_is_answered_with_the_nearest():
    with pytest.raises(PlanError, match="did you mean `share`"):
        solve(PROBLEM, "shore")


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ((PROBLEM.requests,), "problem"),
        ((PROBLEM, 3), "strategy"),
        ((PROBLEM, lambda problem: 3), "strategy"),
        ((PROBLEM, "exact", -1), "budget"),
        ((PROBLEM, "exact", 0.5), "budget"),
        ((PROBLEM, "exact", None, float("nan")), "time_limit"),
        ((PROBLEM, "exact", None, "1"), "time_limit"),
    ],
)
def test_what_is_no_argument_of_solve_is_refused_by_its_name(given, name):
    with pytest.raises(PlanError, match=rf"^error\[plan-argument\]: `{name}` of `solve` takes"):
        solve(*given)


MADE = solve(PROBLEM)
TABLE = "id,lower,upper,size\na,0,1,4\n"
AT_ZERO = {request.id: ("global", 0) for request in PROBLEM.requests}


WHOLE = Plan.of(PROBLEM, AT_ZERO)


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (lambda: Plan.of(PROBLEM, {"a": ("global", 0)}), "broken: `b` is not placed"),
        (lambda: replace(WHOLE, pools={}), "lies in `global`, which the plan does not have"),
        (
            lambda: replace(WHOLE, pools={"global": PlannedPool("sram", "global", 4)}),
            "pool `global` is in memory `sram`, which the problem does not have",
        ),
        (lambda: Plan.of(PROBLEM, AT_ZERO | {"a": ("global", Dim("z"))}), "has dims that the problem does not have"),
        (lambda: Plan.of(PROBLEM, AT_ZERO | {"a": ("global", 10**400)}), "has 1329 bits"),
        (lambda: replace(WHOLE, proved=10**400), "has 1329 bits"),
    ],
)
@pytest.mark.parametrize(
    "tell", [Plan.to_text, Plan.to_svg, Plan.explain, Plan.to_json, lambda plan: write_csv(plan.problem, plan)]
)
def test_a_broken_plan_is_neither_drawn_nor_explained_nor_written(broken, told, tell):
    with pytest.raises(PlanError, match=rf"^error\[broken-plan\]: .*{told}"):
        tell(broken())


@every(
    "call, told",
    [
        (lambda: check(None, MADE), "`problem` of `check` takes a Problem, and is given None"),
        (lambda: check(PROBLEM, None), "`plan` of `check` takes a Plan, and is given None"),
        (lambda: Problem((), facts=3), "`facts` of `Problem` takes a dict from names to dims, and is given 3"),
        (lambda: Problem((), facts={"n": 3}), "`facts` of `Problem` takes a dict from names to dims"),
        (lambda: read_csv(None), "`source` of `read_csv` takes a path, or an open text file, and is given None"),
        (lambda: read_csv(StringIO(TABLE), facts=3), "`facts` of `read_csv` takes a text"),
        (lambda: read_csv(StringIO(TABLE), bind={"n": 0.5}), "`bind` of `read_csv` takes a dict"),
        (lambda: read_csv(StringIO(TABLE), pools=3), "the pools of a problem are 3"),
        (lambda: write_csv(None), "`problem` of `write_csv` takes a Problem"),
        (lambda: write_csv(PROBLEM, 3), "`plan` of `write_csv` takes a Plan, or None, and is given 3"),
        (lambda: write_csv(Problem((Request("z", 4, (0, 1)),)), MADE), "`plan` of `write_csv` takes a Plan of all"),
        (lambda: write_csv(PROBLEM, MADE, 3), "`target` of `write_csv` takes a path"),
        (lambda: Plan.of(None, {}), "`problem` of `Plan.of` takes a Problem"),
        (lambda: Plan.of(PROBLEM, 3), "`placements` of `Plan.of` takes a dict from ids to places"),
        (lambda: Plan.of(PROBLEM, AT_ZERO | {"a": ("global", 0.5)}), r"the name of a pool and an offset in bytes"),
        (lambda: Plan.of(PROBLEM, AT_ZERO | {"a": 4}), r"`placements['a']` of `Plan.of` takes"),
        (lambda: solve(PROBLEM, cache=3), "`cache` of `solve` takes a PlanCache, and is given 3"),
        (lambda: PerShape(None), "`problem` of `PerShape` takes a Problem"),
        (lambda: beside(3), "`after` of `beside` takes a Plan, and is given 3"),
        (lambda: offset_evaluator(None), "`plan` of `offset_evaluator` takes a Plan"),
        (lambda: read_csv("a\0b"), "`source` of `read_csv` takes a path"),
        (lambda: write_csv(PROBLEM, MADE, "a\0b"), "`target` of `write_csv` takes a path"),
        (lambda: MADE.to_svg("a.svg"), "`binding` of `Plan.to_svg` takes a dict from dims to integers"),
        (lambda: MADE.to_text(3), "`binding` of `Plan.to_text` takes a dict from dims to integers"),
        (
            lambda: MADE.to_text(width="9"),
            "`width` of `Plan.to_text` takes an integer from 1 to 100000, and is given '9'",
        ),
        (lambda: MADE.to_text(height=1.5), "`height` of `Plan.to_text` takes an integer"),
        (lambda: MADE.to_text(height=10**9), "`height` of `Plan.to_text` takes an integer"),
        (lambda: beside(MADE).to_text(width=0), "`width` of `Comparison.to_text` takes an integer"),
        (lambda: beside(MADE).to_svg(width=None), "`width` of `Comparison.to_svg` takes an integer"),
        (lambda: MADE.explain(3), "the plan has no request `3`"),
        (lambda: MADE.explain(["a"]), "`first` of `Plan.explain` takes the id of a request, and is given ['a']"),
        (lambda: lower_bound(3), "`problem` of `lower_bound` takes a Problem, and is given 3"),
        (lambda: lower_bound(PROBLEM, "ab"), "the pairs in place of a problem are 'ab'"),
        (lambda: parse_facts(3), "`text` of `parse_facts` takes a text, and is given 3"),
        (lambda: Plan(3, {}, {}, "mine"), "`problem` of `Plan` takes a Problem, and is given 3"),
        (lambda: Plan(PROBLEM, 3, {}, "mine"), "`placements` of `Plan` takes a dict, and is given 3"),
        (lambda: Layout(PROBLEM, {}, None, "mine"), "`pools` of `Layout` takes a dict, and is given None"),
        (lambda: Layout(PROBLEM, {}, {}, 3), "`strategy` of `Layout` takes a text, and is given 3"),
        (lambda: Layout(PROBLEM, {}, {}, "mine", in_place=3), "the pairs in place of a problem are 3"),
    ],
)
def test_what_is_of_another_kind_is_refused_by_its_name(call, told):
    with pytest.raises(PlanError, match=re.escape(told)):
        call()


def test_pairs_in_place_count_once_in_what_does_not_fit():
    requests = (Request("a", 64, (0, 2)), Request("b", 64, (1, 3)), Request("c", 32, (0, 3)))
    pair = Problem(requests, (Pool("global", capacity=90),), in_place=(("b", "a"),))
    with pytest.raises(CapacityError, match=r"need 96 bytes at time \d, when .* `c`") as caught:
        solve(pair, "share")
    assert "holds 90 bytes, and the plan needs 96" in str(caught.value)
    beside = Problem((*requests[:2], Request("c", 32, (1, 2))), (Pool("global", capacity=63),), in_place=(("b", "a"),))
    with pytest.raises(CapacityError, match="at time 1, when these are live: `a`, `b`, `c`; `b` in place of `a`"):
        solve(beside, "share")


def test_what_does_not_fit_is_told_with_the_buffers_at_the_peak():
    requests = tuple(Request(r.id, r.size, r.live, pools=("p",)) for r in PROBLEM.requests)
    assert solve(Problem(requests, (Pool("p", capacity=180),))).total == 180
    with pytest.raises(CapacityError) as caught:
        solve(Problem(requests, (Pool("p", capacity=179),)))
    assert str(caught.value) == (
        "error[over-capacity]: memory `p` holds 179 bytes, and the plan needs 180\n"
        "  = help: the requests of `p` need 180 bytes at time 4, when these are live: `c`, `d`"
    )


def test_fixed_offsets_that_clash_are_told():
    problem = Problem((Request("a", 64, (0, 2), fixed=0), Request("b", 64, (1, 3), fixed=32)))
    with pytest.raises(PlanError, match="fixed-overlap"):
        solve(problem)


@pytest.mark.parametrize("strategy", ["none", "tvm", "share"])
def test_json_and_back(strategy):
    problem = Problem(
        (
            Request("a", 100, ((0, 2), (4, 5)), align=4, pools=("p", "q")),
            Request("b", 50, (1, 4), fixed=16, pools=("p",), kind="f"),
        ),
        (Pool("p", "shared", 4096, 16), Pool("q")),
        in_place=(("a", "b"),),
    )
    assert Problem.from_json(problem.to_json()) == problem
    plan = solve(problem, strategy)
    again = Plan.from_json(plan.to_json())
    assert again == plan
    assert again.seconds == plan.seconds


@pytest.mark.parametrize("strategy", ["none", "tvm", "share"])
def test_symbolic_json_and_back(strategy):
    problem, *_ = symbolic()
    plan = solve(problem, strategy)
    again = Plan.from_json(plan.to_json())
    assert again.to_json() == plan.to_json()
    assert again.explain() == plan.explain()
    assert check(again.problem, again)


@pytest.mark.parametrize("travel", [lambda plan: pickle.loads(pickle.dumps(plan)), copy.deepcopy])
def test_problems_and_plans_travel_to_other_processes(travel):
    plan = solve(symbolic()[0], "pack")
    assert plan.problem.by_id
    other = travel(plan)
    assert (other, other.problem, str(other), other.explain()) == (plan, plan.problem, str(plan), plan.explain())
    assert vars(travel(plan.problem)).keys() < vars(plan.problem).keys()  # without what was computed
    with pytest.raises(TypeError):
        other.placements["a"] = None


def test_a_dim_is_its_name_in_problems_and_in_what_is_read_back():
    n = Dim("n", max=8)
    problem = Problem((Request("a", 4 * n, (0, 1)), Request("b", Dim("n", max=8) + 0, (0, 1))))
    assert problem.dims == (n,)
    assert Problem.from_json(problem.to_json()) == problem
    plan = solve(problem, "share")
    assert Plan.from_json(plan.to_json()).total == plan.total == 5 * n
    with pytest.raises(PlanError, match="two dims are called `n`: max=8, and min=4"):
        Problem((Request("a", 4 * n, (0, 1)), Request("b", Dim("n", min=4) + 0, (0, 1))))


@pytest.mark.parametrize("name", ["batch size", "max", "4", "", "n-m", "n//0", "n_1"])
def test_dims_may_be_called_anything(name):
    n, other, third = Dim(name, max=64), Dim("n"), Dim("d_batch_size")
    requests = (Request("a", maximum(4 * n, 8 * other), (0, 2)), Request("b", 2 * n * third, (1, 3)))
    problem = Problem(requests)
    plan = solve(problem, "share")
    for again in (Problem.from_json(problem.to_json()), Plan.from_json(plan.to_json()).problem):
        assert again == problem
        assert sorted((dim.max or 0) for dim in again.dims) == [0, 0, 64]
        assert again.at(dict.fromkeys(again.dims, 3)) == problem.at(dict.fromkeys(problem.dims, 3))
    table = read_csv(StringIO(write_csv(problem, plan)))
    assert table.at(dict.fromkeys(table.dims, 3)).requests == problem.at(dict.fromkeys(problem.dims, 3)).requests


def test_values_are_given_by_dim_by_variable_by_name_or_by_symbol():
    n, m = tl.dims("n m")
    problem = Problem((Request("a", 4 * n.dim * m.dim, (0, 1)),))
    plan = solve(problem)
    same_name = tl.dim("n", max=7)
    for at in (
        plan.at({n: 5, m: 2}),
        plan.at({"n": 5, "m": 2}),
        plan.at(n=5, m=2),
        plan.at({n.dim: 5}, m=np.int32(2)),
        plan.at({same_name: 5, m: 2, "h": 3}),
        plan.at({sympy.Symbol("n"): 5, sympy.Symbol("m", positive=True): 2}),
    ):
        assert at.total == 40
    assert problem.at(n=5, m=2).requests[0].size == 40
    assert plan.to_text({"n": 5, m: 2}) == plan.to_text({n.dim: 5, m.dim: 2})
    assert plan.at(n=0, m=1).total == 0


@every(
    "binding, text",
    [
        ({"n": -1, "m": 8}, "`n` cannot be -1"),
        ({"n": 1, "m": 7}, "`m` cannot be 7.*a multiple of 8"),
        ({"n": 2.5, "m": 8}, "`n` of `Plan.at` takes an integer, and is given 2.5"),
        ({"n": True, "m": 8}, "takes an integer, and is given True"),
        ({"n": 1}, "no value is given for the dim `m`"),
        ({2: 1}, "takes dims, or their names, as keys, and is given 2"),
        ({tl.dim("n") + 1: 3}, "takes dims, or their names, as keys"),
        (5, "takes a dict from dims to integers, and is given 5"),
    ],
)
def test_values_that_are_none_are_refused(binding, text):
    n, m = Dim("n"), Dim("m", multiple_of=8)
    plan = solve(Problem((Request("a", 4 * n * m, (0, 1)),)))
    with pytest.raises(tl.TirliteError, match=f"(?s){text}"):
        plan.at(binding)


def test_sizes_are_compared_with_expressions_of_the_users_dims():
    n, m = tl.dims("n m")

    @tl.kernel(schedule=None)
    def twice(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
        t = tl.alloc(tl.f32[n, m + 1])
        for i in range(n):
            for j in range(m):
                t[i, j] = x[i, j] * 2
        for i in range(n):
            for j in range(m):
                y[i, j] = t[i, j]

    total = twice.plan.total
    assert total == 4 * n * (m + 1)
    assert 4 * n + n * m * 4 == total
    assert total != 4 * n * m
    assert total - 4 * n * m == 4 * n
    (allocation,) = tl.allocations(twice.ir)
    assert allocation.shape == (n, m + 1)
    assert (n, m + 1) == allocation.shape
    assert allocation.bytes == total
    assert Dim("n") == n
    assert Dim("n") != m
    # Expressions of the IR are themselves alone, so that they can be kept in sets.
    assert n + 1 != n + 1
    assert total != n / 2


def test_problems_are_made_of_the_users_dims():
    n = tl.dim("n", max=64)
    a, b = Request("a", 4 * n, (0, 1)), Request("b", sympy.Symbol("n") + 1, (0, 1))
    problem = Problem((a, b), (Pool("global", copies=n + 1),), facts={"n": n})
    assert [each.size for each in problem.requests] == [4 * n.dim, n.dim + 1]
    assert problem.pools[0].copies == n + 1
    plan = Plan.of(problem, {"a": ("global", n + 1), "b": ("global", 0)})
    assert check(problem, plan)
    assert plan.pools["global"].size == 5 * n + 1
    table = read_csv(StringIO("id,lower,upper,size_expr\na,0,2,4*n\n"), facts={"n": n})
    assert table.requests[0].size == 4 * n.dim
    for size in (n / 2, n < 3, tl.f32):
        with pytest.raises(PlanError, match="bad-size"):
            Request("a", size, (0, 1))
    with pytest.raises(PlanError, match="takes a dict from names to dims"):
        Problem((a, b), facts={"n": 2 * n})


def test_facts_in_json_that_no_integer_obeys_are_refused():
    text = Problem((Request("a", 4 * Dim("n", min=2, max=8), (0, 1)),)).to_json()
    for wrong in (text.replace('"max": 8', '"max": 1'), text.replace('"max": 8', '"max": 8.5'), "[" * 100_000):
        with pytest.raises(PlanError, match="bad-plan-json"):
            Problem.from_json(wrong)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"requests": 3}', '{"problem": {}}'])
def test_malformed_json_is_refused(text):
    with pytest.raises(PlanError, match="bad-plan-json"):
        Problem.from_json(text)
    with pytest.raises(PlanError, match="bad-plan-json"):
        Plan.from_json(text)


@every("size", [2.5, None, [4]])
def test_a_size_in_json_that_is_no_number_of_bytes_is_told_as_such(size):
    text = Problem((Request("a", 4, (0, 1)),)).to_json()
    with pytest.raises(PlanError, match="the size of request `a` is .*, which is not a number of bytes"):
        Problem.from_json(text.replace('"size": 4', f'"size": {json.dumps(size)}'))


@every("size", ["n +", "__import__('os')", "n ** m", "x", "n.max", "max()", "1.5", "'n'", "-'n'"])
def test_a_size_in_json_is_a_size_and_nothing_else(size):
    text = Problem((Request("a", 4 * Dim("n"), (0, 1)),)).to_json().replace("4*n", size)
    with pytest.raises(PlanError, match="bad-size-text"):
        Problem.from_json(text)


def test_a_size_of_many_terms_survives_json():
    size = sum((Dim(f"d{i}") for i in range(500)), 0)
    problem = Problem((Request("a", size, (0, 1)),))
    assert Problem.from_json(problem.to_json()).to_json() == problem.to_json()


def test_charts_show_each_request_with_its_name():
    problem, n, m = symbolic()
    plan = solve(problem)
    svg = plan.to_svg()
    assert svg.count("<title>") == 5, "one for each interval"
    assert "n = 256" in svg
    text = plan.to_text({n: 8, m: 2})
    assert "n = 8" in text
    assert all(f"{name}:" in text for name in "abcd")


PROGRAM = """
from tirlite.plan import Problem, Request, solve
from tirlite.sizes import Dim, maximum
n, m, k = Dim("n"), Dim("m"), Dim("k", max=100)
sizes = [4 * n, 8 * m, n * m, 4 * k, 64, 1000, n + m + k]
requests = [Request(f"r{i}", sizes[i * i % 7], ((i, i + 2 + i % 5), (i + 9, i + 10 + i % 3))) for i in range(60)]
for name in ("none", "tvm", "share"):
    plan = solve(Problem(tuple(requests)), name)
    print(plan, plan.explain(), plan.to_text())
"""


def test_every_process_makes_the_same_plan():
    outputs = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert len(outputs) == 1


@pytest.mark.parametrize("strategy", ["none", "tvm", "share"])
def test_thousands_of_requests_that_cannot_share_are_planned(strategy):
    problem = Problem(tuple(Request(f"r{i}", 64 + i, ((i, 10_000 - i),)) for i in range(5000)))
    plan = solve(problem, strategy)
    assert len(plan.pools) == 5000
    assert plan.proved_optimal
