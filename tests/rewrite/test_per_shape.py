"""Strategy `per_shape`: one compiled function for all shapes, whose storage is planned at each new one."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite import ir
from tirlite.analysis import check_storage, plan_demands, shape_plan
from tirlite.codegen import lower, optimised
from tirlite.interp import interpret
from tirlite.ir import PrimFunc
from tirlite.plan import Ok, check
from tirlite.rewrite import ByShape, Normalize, StorageRewrite
from tirlite.runtime import shape_plans

n, m = tl.dims("n m")


@tl.kernel
def columns(x: tl.f32[n, m], y: tl.f32[m], z: tl.out[tl.f32[n, m]]):
    more = tl.alloc(tl.f32[n, m])
    for i in range(n):
        for j in range(m):
            more[i, j] = x[i, j] + 1
    sums = tl.alloc(tl.f32[m])
    for j in range(m):
        sums[j] = 0
        for i in range(n):
            sums[j] += more[i, j]
    turned = tl.alloc(tl.f32[m])
    for j in range(m):
        turned[j] = sums[m - 1 - j] * y[j]
    both = tl.alloc(tl.f32[n, m])
    for i in range(n):
        for j in range(m):
            both[i, j] = turned[j] + x[i, j]
    for i in range(n):
        for j in range(m):
            z[i, j] = both[i, j] + sums[j]


REWRITTEN = """
n, m = tl.dims("n m")

@tl.kernel
def columns(x: tl.f32[n, m], y: tl.f32[m], z: tl.out[tl.f32[n, m]], plan: tl.i64[5]):
    with tl.attr(plan, "disjoint", ((1, 2), (2, 3, 4))):
        arena = tl.alloc(tl.u8[plan[0]], alignment=4)
        more = tl.view(arena, tl.f32[n, m], byte_offset=plan[1], fresh=True)
        for i in range(n):
            for j in range(m):
                more[i, j] = x[i, j] + tl.f32(1.0)
        sums = tl.view(arena, tl.f32[m], byte_offset=plan[2], fresh=True)
        for j in range(m):
            sums[j] = tl.f32(0.0)
            for i in range(n):
                sums[j] = sums[j] + more[i, j]
        turned = tl.view(arena, tl.f32[m], byte_offset=plan[3], fresh=True)
        for j in range(m):
            turned[j] = sums[m - 1 - j] * y[j]
        both = tl.view(arena, tl.f32[n, m], byte_offset=plan[4], fresh=True)
        for i in range(n):
            for j in range(m):
                both[i, j] = turned[j] + x[i, j]
        for i in range(n):
            for j in range(m):
                z[i, j] = both[i, j] + sums[j]
"""

SHAPES = [(3, 4), (5, 2), (1, 1), (0, 3), (3, 0), (40, 7), (7, 40), (3, 4)]


def rewritten(func: PrimFunc, **options: bool) -> tuple[PrimFunc, ByShape]:
    made = StorageRewrite("per_shape", **options).planned(Normalize()(func))
    assert isinstance(made.plan, ByShape)
    return made.func, made.plan


def arguments(rows: int, cols: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(rows * 100 + cols)
    return random.random((rows, cols), np.float32), random.random(cols, np.float32)


def test_the_function_takes_its_plan_as_a_last_parameter():
    func, _ = rewritten(columns.ir)
    assert tl.structural_equal(func, tl.parse(REWRITTEN))
    assert tl.structural_equal(tl.parse(str(func)), func)


def test_results_are_the_same_at_many_shapes_and_nothing_is_compiled_again():
    kernel = tl.compile(columns, strategy="per_shape")
    for shape in SHAPES:
        x, y = arguments(*shape)
        np.testing.assert_array_equal(kernel(x, y), columns.interpret(x, y))
    assert [stage for stage in kernel.timing if stage == "link"] == ["link"]


def test_the_interpreter_agrees_on_the_function_that_takes_a_plan():
    func, shapes = rewritten(columns.ir)
    for rows, cols in ((3, 4), (5, 2), (1, 6)):
        x, y = arguments(rows, cols)
        values = {"n": rows, "m": cols}
        plan = np.array(shapes.plans.entries_at(tuple(values[var.name] for var in shapes.variables)), np.int64)
        z = np.zeros((rows, cols), np.float32)
        given = dict(zip(func.params, (x, y, z, plan), strict=True)) | {n: rows, m: cols}
        interpret(func, given)
        np.testing.assert_array_equal(z, columns.interpret(x, y))


def test_bytes_are_the_lower_bound_of_each_shape():
    kernel = tl.compile(columns, strategy="per_shape")
    one_for_all = columns.plan
    saved = 0
    for rows, cols in ((1, 1), (1, 100), (100, 1), (64, 64), (3, 1000)):
        plan = kernel.plan_at(n=rows, m=cols)
        assert (plan.total, plan.gap, plan.strategy) == (plan.lower_bound, 0.0, "per_shape")
        assert check(plan.problem, plan)
        saved += columns.plan_at(n=rows, m=cols).total - plan.total
    assert one_for_all.strategy != "per_shape"
    assert saved >= 0


def test_a_plan_is_made_once_for_each_shape():
    kernel = tl.compile(columns, strategy="per_shape")
    for shape in ((3, 4), (3, 4), (5, 2), (3, 4), (0, 4), (0, 4)):
        kernel(*arguments(*shape))
    assert kernel.plans_made == (3, 3)
    assert columns.plans_made == (0, 0)


def test_a_kernel_without_symbolic_sizes_takes_no_plan():
    source = "@tl.kernel\ndef f(x: tl.f32[8], y: tl.out[tl.f32[8]]):\n    t = tl.alloc(tl.f32[8])\n"
    source += "    for i in range(8):\n        t[i] = x[i]\n    for i in range(8):\n        y[i] = t[7 - i]\n"
    kernel = tl.compile(tl.parse(source), strategy="per_shape")
    np.testing.assert_array_equal(kernel(np.arange(8, dtype=np.float32)), np.arange(7, -1, -1))
    assert shape_plan(kernel.lowered) is None
    assert kernel.plan.total == kernel.plan_at().total


def test_sizes_may_depend_on_numbers_among_the_parameters():
    k = tl.dim("k")

    @tl.kernel(strategy="per_shape")
    def repeated(x: tl.f32[k], times: tl.i64, y: tl.out[tl.f32[k]]):
        many = tl.alloc(tl.f32[times, k])
        for t in range(times):
            for i in range(k):
                many[t, i] = x[i] * t
        for i in range(k):
            y[i] = 0
            for t in range(times):
                y[i] += many[t, i]

    for times in (1, 3, 0, 3):
        np.testing.assert_array_equal(repeated(np.ones(5, np.float32), times), np.full(5, sum(range(times))))
    assert repeated.plan_at(k=5, times=3).total == 60


def test_a_size_that_differs_by_iteration_counts_as_the_most_that_it_can_be():
    @tl.kernel(strategy="per_shape", target=tl.Target.host(workers=1))
    def triangle(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        for i in range(n):
            row = tl.alloc(tl.f32[i + 1])
            for j in range(i + 1):
                row[j] = x[j] + i
            y[i] = 0
            for j in range(i + 1):
                y[i] += row[i - j]

    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(triangle(x), [sum(x[: i + 1] + i) for i in range(5)])
    assert triangle.plan_at(n=5).total == 20


def test_tagged_memory_is_planned_once_beside_it():
    target = tl.Target.host().with_memory("local.UB", tl.MemoryInfo(8, 256, 8 << 16, None))

    @tl.kernel(strategy="per_shape", target=target)
    def blocks(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        whole = tl.alloc(tl.f32[n])
        part = tl.alloc(tl.f32[16], scope="local.UB")
        for i in range(n):
            whole[i] = x[i] * 2
        for i in range(16):
            part[i] = i
        for i in range(n):
            y[i] = whole[n - 1 - i] + part[i % 16]

    x = np.arange(40, dtype=np.float32)
    np.testing.assert_array_equal(blocks(x), x[::-1] * 2 + np.arange(40) % 16)
    assert [each.scope for each in tl.allocations(blocks.lowered)] == ["global", "local.UB"]


def test_what_is_in_place_shares_an_entry():
    @tl.kernel(strategy="per_shape")
    def steps(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        a = tl.alloc(tl.f32[n])
        b = tl.alloc(tl.f32[n])
        for i in range(n):
            a[i] = x[i] + 1
        for i in range(n):
            b[i] = a[i] * 2
        for i in range(n):
            y[i] = b[n - 1 - i]

    x = np.arange(9, dtype=np.float32)
    np.testing.assert_array_equal(steps(x), ((x + 1) * 2)[::-1])
    assert str(steps.lowered).count("byte_offset=plan[1]") == 2
    plan = steps.plan_at(n=9)
    assert (plan.total, plan.in_place) == (36, (("b", "a"),))


def test_what_the_plan_keeps_apart_is_told_to_llvm():
    silent = tl.parse(REWRITTEN.replace("((1, 2), (2, 3, 4))", "()"))
    assert "!noalias" not in lower(silent).text
    told = lower(tl.compile(columns, strategy="per_shape").lowered)
    assert "!noalias" in told.text
    assert "memcheck" not in optimised(told).llvm


def spoilt(text: str) -> str:
    """What the check says of the rewritten function with the rows and the offsets of this text; empty for Ok."""
    func, source = rewritten(columns.ir)[0], tl.parse(text)
    offsets = {s.buffer.name: s.byte_offset for s in ir.statements(source.body) if isinstance(s, ir.View)}

    def view(node: ir.View) -> ir.View:
        offset = offsets[node.buffer.name]
        return node.replaced(
            byte_offset=offset.replaced(buffer=func.params[-1]) if isinstance(offset, ir.Load) else offset
        )

    changed = ir.rewrite(func, {ir.View: view})
    rows = source.body.stmts[0].value
    changed = changed.replaced(body=ir.SeqStmt((changed.body.stmts[0].replaced(value=rows),)))
    verdict = check_storage(Normalize()(columns.ir), changed)
    return "" if isinstance(verdict, Ok) else str(verdict)


def test_the_check_demands_that_all_that_lives_together_is_listed():
    assert spoilt(REWRITTEN) == ""
    # More than need be is listed: every plan must keep it, so that is safe.
    assert spoilt(REWRITTEN.replace("((1, 2), (2, 3, 4))", "((1, 2, 3, 4),)")) == ""
    assert "`sums` is read after `both` was stored" in spoilt(REWRITTEN.replace("(2, 3, 4)", "(2, 3), (3, 4)"))
    assert "`more` is read after `sums` was stored" in spoilt(REWRITTEN.replace("(1, 2), ", "(1,), "))
    assert "is read after" in spoilt(REWRITTEN.replace("plan[4]", "plan[2]"))
    assert "not at one of its entries" in spoilt(REWRITTEN.replace("byte_offset=plan[4]", "byte_offset=64"))


def test_each_plan_is_checked_against_what_the_function_demands(monkeypatch: pytest.MonkeyPatch):
    kernel = tl.compile(columns, strategy="per_shape")
    kernel(*arguments(3, 4))
    planner = kernel._version.rewritten.plan.plans
    good = planner.entries_at((4, 5))
    monkeypatch.setattr(planner, "entries_at", lambda values: (*good[:2], good[1], *good[3:]))
    with pytest.raises(tl.InternalError, match="share bytes") as caught:
        kernel(*arguments(5, 4))
    assert caught.value.code == "unsafe-shape"


def test_the_demands_of_the_function_are_those_of_the_problem():
    func, shapes = rewritten(columns.ir)
    demands = plan_demands(func)
    assert demands is not None
    assert demands.conditions == shapes.plans.conditions
    assert [str(size) for size in demands.sizes] == ["0", "4*m*n", "4*m", "4*m", "4*m*n"]


def test_a_function_that_was_printed_and_read_takes_its_plan_from_the_caller():
    func, shapes = rewritten(columns.ir)
    kernel = tl.compile(tl.parse(str(func)), strategy="none")
    for rows, cols in ((3, 4), (30, 40), (3, 4)):
        x, y = arguments(rows, cols)
        values = {"n": rows, "m": cols}
        plan = np.array(shapes.plans.entries_at(tuple(values[var.name] for var in shapes.variables)), np.int64)
        np.testing.assert_array_equal(kernel(x, y, plan=plan), columns.interpret(x, y))


def test_more_bytes_than_anyone_has_are_refused(monkeypatch: pytest.MonkeyPatch):
    kernel = tl.compile(columns, strategy="per_shape")
    monkeypatch.setattr(shape_plans, "_LARGEST", 100)
    with pytest.raises(tl.CallValueError) as caught:
        kernel(*arguments(30, 40))
    assert caught.value.code == "workspace-too-large"


def test_a_long_function_is_cut_into_pieces_all_the_same():
    lines = [
        f"t{k} = tl.alloc(tl.f32[n])\nfor i in range(n):\n    t{k}[i] = {f't{k - 1}[n - 1 - i]' if k else 'x[i]'} + {k}"
        for k in range(120)
    ]
    lines.append("for i in range(n):\n    y[i] = t119[i]")
    body = "\n".join("    " + line for part in lines for line in part.split("\n"))
    source = f'n = tl.dim("n")\n\n@tl.kernel\ndef f(x: tl.f32[n], y: tl.out[tl.f32[n]]):\n{body}\n'
    kernel = tl.compile(tl.parse(source), strategy="per_shape")
    assert "_piece2(" in kernel.llvm
    np.testing.assert_array_equal(kernel(np.zeros(3, np.float32)), np.full(3, sum(range(120))))
    assert kernel.plan_at(n=100).total == 800


def test_dims_of_one_name_have_one_value_in_what_is_asked_and_advised():
    one, other = tl.dim("n"), tl.dim("n")

    @tl.kernel(strategy="per_shape")
    def both(x: tl.f32[one], y: tl.f32[other]):
        s = tl.alloc(tl.f32[one])
        for i in range(one):
            s[i] = x[i]
        t = tl.alloc(tl.f32[other])
        for i in range(other):
            t[i] = s[0]
        y[0] = t[0]

    with pytest.raises(tl.PlanError, match=r"plan-by-shape(.|\n)*`both\.plan_at\(n=4\)`"):
        _ = both.plan
    assert both.plan_at(n=4).total <= 32
