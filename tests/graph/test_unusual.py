"""Graphs of unusual shapes: on every executor, as native code, and under the planners, next to what they mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from effort import effort
from random_cases import IS_THOROUGH

import tirlite as tl
from tirlite.codegen import Effort
from tirlite.graph import (
    Builder,
    Executable,
    Function,
    RuntimeOptions,
    StaticRuntime,
    StorageCoalesce,
    compile,  # noqa: A004
    evaluate,
    explicit_allocation,
    memory_order,
    memory_problem,
    plan_memory,
    program,
)
from tirlite.graph.types import substituted

PLANNERS = ("graph", "auto", "per_shape") if IS_THOROUGH else ("auto",)
Arrays = Sequence[np.ndarray]
Case = tuple[Function, Sequence[Arrays]]


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


def nested_branches() -> Case:
    n = tl.dim("n")
    g = Builder("nested")
    x, p, q = g.input("x", tl.f32[n, 4]), g.input("p", tl.bool_), g.input("q", tl.bool_)
    a = g.let("a", g.exp(x))
    inner = g.if_(q, g.add(a, g.tanh(x)), g.reshape(g.relu(g.reshape(a, [-1])), [n, 4]))
    outer = g.if_(p, g.if_(q, g.negative(inner), a), g.multiply(inner, x))
    f = g.function([outer, g.if_(p, a, x)])
    return f, [(floats(rows, 4), np.bool_(c), np.bool_(d)) for rows in (3, 0) for c in (0, 1) for d in (0, 1)]


def views_of_views() -> Case:
    n = tl.dim("n")
    g = Builder("views")
    x = g.input("x", tl.f32[n, 6])
    y = g.exp(x)
    seen = g.reshape(g.reshape(g.reshape(y, [-1]), [2, n, 3]), [n, 2, 3])
    back = g.reshape(g.flatten(seen, 0), [n, 6])
    f = g.function([g.tanh(seen), g.add(back, y), back, g.reshape(x, [-1]), g.reshape(g.reshape(x, [-1]), [n, 3, 2])])
    return f, [(floats(rows, 6),) for rows in (1, 5, 0)]


def same_result_twice() -> Case:
    g = Builder("twice")
    x, unused = g.input("x", tl.f32[5]), g.input("unused", tl.f32[2, 2])
    y = g.relu(x)
    one = g.constant(np.arange(3, dtype=np.int64), name="one")
    assert unused.shape == (2, 2)
    return g.function([y, y, x, x, one, one, g.reshape(y, [5, 1])]), [(floats(5), floats(2, 2))]


def constants_alone() -> Case:
    g = Builder("constants")
    g.input("x", tl.f32[2])
    a = g.constant(np.arange(6, dtype=np.float32).reshape(2, 3))
    return g.function([a, g.exp(a), g.transpose(g.add(a, a))]), [(floats(2),)]


def nothing_to_compute() -> Case:
    g = Builder("nothing")
    x, y = g.input("x", tl.i8[3]), g.input("y", tl.bool_[2, 0])
    return g.function([y, x]), [(np.int8([1, -2, 3]), np.zeros((2, 0), np.bool_))]


def integers_and_bools() -> Case:
    n = tl.dim("n")
    g = Builder("integers")
    x, y = g.input("x", tl.i32[n]), g.input("y", tl.i32[n])
    less = g.less(x, y)
    both = g.logical_and(less, g.logical_not(g.equal(x, y)))
    low = g.where(both, x, y)
    wide = g.cast(low, tl.i64)
    f = g.function([both, g.add(wide, wide), g.cast(both, tl.u8), g.reduce_sum(wide), g.multiply(x, y)])
    rng = np.random.default_rng(3)
    return f, [tuple(rng.integers(-(2**31), 2**31 - 1, size, np.int32) for _ in range(2)) for size in (7, 0)]


def empty_extents() -> Case:
    g = Builder("empty")
    x, y = g.input("x", tl.f32[0, 3]), g.input("y", tl.f32[2, 3])
    joined = g.concat([x, y, x], axis=0)
    none = g.gather(y, np.zeros((0,), np.int64), axis=1)
    f = g.function([joined, g.exp(x), g.reduce_sum(x, 0), g.matmul(g.transpose(x), x), none, g.reduce_sum(none, 1)])
    return f, [(floats(0, 3), floats(2, 3))]


def parts_of_parts() -> Case:
    g = Builder("parts")
    x = g.input("x", tl.f32[4, 12])
    first, second, third = g.split(x, 3, axis=1)
    left, right = g.split(g.exp(second), 2, axis=1)
    pair = g.tuple(g.tuple(left, first), right, g.tuple(g.tuple(third)))
    inner = g.item(pair, 0)
    return g.function([g.item(inner, 1), g.subtract(g.item(inner, 0), g.item(pair, 1)), pair]), [(floats(4, 12),)]


def functions_in_functions() -> Case:
    n, m, k = tl.dims("n m k")
    a = Builder("innermost")
    p, q = a.input("p", tl.f32[n]), a.input("q", tl.f32[n])
    swapped = a.function([a.add(p, q), p])
    b = Builder("middle")
    r = b.input("r", tl.f32[m])
    both = b.invoke(swapped, b.exp(r), r)
    middle = b.function([b.item(both, 1), b.multiply(b.item(both, 0), 2.0)], primitive=True)
    g = Builder("outer")
    x, c = g.input("x", tl.f32[k]), g.input("c", tl.bool_)
    once = g.invoke(middle, x)
    twice = g.invoke(middle, g.concat([g.item(once, 0), g.item(once, 1)]))
    f = g.function([g.if_(c, g.item(twice, 1), g.concat([x, x])), g.item(twice, 0)])
    return f, [(floats(size), np.bool_(c)) for size in (3, 1) for c in (0, 1)]


def unrolled_lstm() -> Case:
    n = tl.dim("n")
    g = Builder("lstm")
    x, h, c = g.input("x", tl.f32[6, n, 3]), g.input("h", tl.f32[n, 4]), g.input("c", tl.f32[n, 4])
    w, r, b = floats(16, 3), floats(16, 4), floats(16)
    steps = []
    for t in range(6):
        now = g.reshape(g.slice(x, [t, 0, 0], [t + 1, n, 3]), [n, 3])
        h, c = g.lstm_cell(now, h, c, w, r, b)
        steps.append(g.reshape(h, [1, n, 4]))
    return g.function([g.concat(steps, axis=0), h, c]), [(floats(6, n, 3), floats(n, 4), floats(n, 4)) for n in (2, 5)]


def dense_block() -> Case:
    n = tl.dim("n")
    g = Builder("dense")
    x = g.input("x", tl.f32[n, 3, 6, 6])
    seen = [x]
    for _ in range(3):
        joined = g.concat(seen, axis=1) if len(seen) > 1 else x
        seen.append(g.relu(g.conv2d(joined, 0.3 * floats(2, joined.shape[1], 3, 3), pad=1)))
    pooled = g.average_pool(g.concat(seen, axis=1), 2)
    return g.function([pooled, seen[1], g.reduce_max(pooled, (2, 3))]), [(floats(n, 3, 6, 6),) for n in (1, 3)]


def tuples_from_branches() -> Case:
    n = tl.dim("n")
    g = Builder("tuples")
    x, c = g.input("x", tl.f32[n, 2]), g.input("c", tl.bool_)
    y = g.let("y", g.exp(x))
    then, other = g.tuple(g.tanh(y), x), g.tuple(y, g.relu(y))
    chosen = g.let("chosen", g.if_(c, then, other))
    f = g.function([g.add(g.item(chosen, 0), g.item(chosen, 1)), g.item(chosen, 1), y])
    return f, [(floats(3, 2), np.bool_(c)) for c in (0, 1)]


def scalars_everywhere() -> Case:
    g = Builder("scalars")
    x, s = g.input("x", tl.f64[3]), g.input("s", tl.f64)
    total = g.reduce_sum(x)
    c = g.less(total, s)
    root = g.if_(c, g.exp(s), g.sqrt(g.abs(total)))
    return g.function([root, g.multiply(x, root), c, s]), [(np.arange(3.0), np.float64(v)) for v in (1.0, 9.0)]


def half_precision() -> Case:
    g = Builder("half")
    x = g.input("x", tl.f16[4, 5])
    y = g.softmax(g.multiply(x, x))
    return g.function([y, g.cast(g.exp(x), tl.f32)]), [(floats(4, 5).astype(np.float16),)]


def zeros_of_either_sign() -> Case:
    g = Builder("zeros")
    x = g.input("x", tl.f32[2])
    padded = [g.pad(x, [1], [0], value=value) for value in (0.0, -0.0)]
    return g.function([g.divide(1.0, each) for each in padded]), [(np.float32([1, 2]),)]


CASES: tuple[Callable[[], Case], ...] = (
    *(nested_branches, views_of_views, same_result_twice, constants_alone, nothing_to_compute, integers_and_bools),
    *(empty_extents, parts_of_parts, functions_in_functions, unrolled_lstm, dense_block, tuples_from_branches),
    *(scalars_everywhere, half_precision, zeros_of_either_sign),
)
BY_NAME = pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)


def compare(got: object, wanted: object, *, exact: bool) -> None:
    assert isinstance(got, tuple) == isinstance(wanted, tuple)
    if isinstance(wanted, tuple):
        for a, b in zip(got, wanted, strict=True):
            compare(a, b, exact=exact)
        return
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    if exact:
        assert np.array_equal(got, wanted, equal_nan=True)
    else:
        half = wanted.dtype == np.float16
        np.testing.assert_allclose(got, wanted, rtol=2e-3 if half else 1e-5, atol=1e-5)


@BY_NAME
def test_executors_give_what_it_means(case: Callable[[], Case]) -> None:
    function, calls = case()
    explicit = explicit_allocation(function)
    programs = [explicit, *(StorageCoalesce(name)(explicit) for name in ("coalesce", "pack", "share", "group", "tvm"))]
    programs.append(Executable.from_json(programs[2].to_json()))
    runtimes = [
        StaticRuntime(function, RuntimeOptions(copy_views=copies, manage_outputs=outputs, reuse=reuse, debug=True))
        for copies, outputs, reuse in ((True, True, True), (False, False, True), (True, False, False))
    ]
    for arrays in [*calls, *calls]:
        wanted = evaluate(function, *arrays)
        for run in (*programs, *runtimes):
            compare(run(*arrays), wanted, exact=True)
        for runtime in runtimes:
            runtime.release_outputs()


@BY_NAME
def test_planners_give_plans_that_hold(case: Callable[[], Case]) -> None:
    function, _ = case()
    plan = plan_memory(function).plan
    assert tl.plan.check(plan.problem, plan) == tl.plan.Ok()
    for views, in_place in ((False, False), (True, True)):
        problem = memory_problem(function, views=views, in_place=in_place)
        for strategy in ("none", "tvm", "share", "group", "coalesce", "pack"):
            made = tl.plan.solve(problem, strategy)
            assert tl.plan.check(problem, made) == tl.plan.Ok()


@pytest.mark.parametrize("strategy", PLANNERS)
def test_native_code_gives_what_it_means(strategy: str) -> None:
    """All cases are called by one function, which is compiled once for each planner."""
    g = Builder("all")
    cases = [case() for case in CASES]
    calls = []
    for number, (function, _) in enumerate(cases):
        # Each function has the dim n to itself.
        own = {tl.dim("n").dim: tl.dim(f"n{number}").dim + 0}
        inputs = [g.input(f"f{number}_{param.name}", substituted(param.type, own)) for param in function.params]
        calls.append(g.invoke(function, *inputs))
    together = compile(g.function(calls), strategy=strategy)
    for turn in range(max(len(arrays) for _, arrays in cases)):
        chosen = [arrays[turn % len(arrays)] for _, arrays in cases]
        with effort(Effort.SOME if strategy == "auto" else Effort.NONE):
            results = together(*(array for arrays in chosen for array in arrays))
        for (function, _), arrays, result in zip(cases, chosen, results, strict=True):
            compare(result, evaluate(function, *arrays), exact=False)


def test_a_chain_of_two_thousand_operators_is_no_problem() -> None:
    g = Builder("deep")
    y = x = g.input("x", tl.f32[tl.dim("n")])
    for number in range(2000):
        y = g.negative(y) if number % 2 else g.relu(g.add(y, x)) if number % 500 == 0 else g.abs(y)
    f = g.function(y)
    array = np.float32([-1, 2, 0.5])
    wanted = evaluate(f, array)
    runtime = StaticRuntime(f)
    explicit = explicit_allocation(f)
    for run in (compile(f), explicit, StorageCoalesce("share")(explicit), runtime, runtime):
        compare(run(array), wanted, exact=True)
    assert len(plan_memory(f).sizes) == 3
    assert memory_order(program(f)).proved
