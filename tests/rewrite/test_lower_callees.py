"""Functions that are called, after LowerCallees, and the plan of their caller."""

from __future__ import annotations

import numpy as np
import pytest
from small_functions import relu, reverse, sums

import tirlite as tl
from tirlite.ir import Store, statements_of
from tirlite.rewrite import Normalize, VectorizeLoops

n, m = tl.dims("n m")
STRATEGIES = ["none", "tvm", "share", "pack", "exact", "auto"]


@tl.kernel
def add(x: tl.f32[n], y: tl.f32[n], total: tl.f32[n]):
    for i in range(n):
        total[i] = x[i] + y[i]


def planned(kernel: tl.Kernel, strategy: str = "pack", **options: object) -> tl.Kernel:
    """The kernel with that strategy, seen to give what the interpreter gives."""
    compiled = tl.compile(kernel, strategy=strategy, **options)
    x = np.random.default_rng(3).normal(size=23).astype(np.float32)
    compiled_y, interpreted_y, lowered_y = (np.zeros_like(x) for _ in range(3))
    compiled(x, compiled_y)
    compiled.interpret(x, interpreted_y)
    tl.compile(compiled.lowered, strategy="none").interpret(x, lowered_y)
    assert np.array_equal(compiled_y, interpreted_y)
    assert np.array_equal(lowered_y, interpreted_y)
    return compiled


def test_the_scratch_of_a_callee_is_planned_by_its_caller() -> None:
    @tl.kernel
    def outer(x: tl.f32[n], y: tl.f32[n]):
        a = tl.alloc(tl.f32[n])
        tl.call(relu, x, a)
        tl.call(sums, a, y)

    expected = tl.parse("""
n = tl.dim("n")

@tl.kernel
def relu(x: tl.f32[n], y: tl.f32[n]):
    for i in range(n):
        y[i] = max(x[i], tl.f32(0.0))

n = tl.dim("n")

@tl.kernel
def sums(x: tl.f32[n], y: tl.f32[n], total: tl.f32[n + 1]):
    total[0] = tl.f32(0.0)
    for i in range(n):
        total[i + 1] = total[i] + x[i]
    for i in range(n):
        y[i] = total[i + 1]

n = tl.dim("n")

@tl.kernel
def outer(x: tl.f32[n], y: tl.f32[n]):
    a = tl.alloc(tl.f32[n])
    tl.call(relu, x, a)
    total = tl.alloc(tl.f32[n + 1])
    tl.call(sums, a, y, total)
""")
    kernel = planned(outer, "none")
    equality = tl.structural_equal(kernel.lowered, expected)
    assert equality, equality
    assert str(planned(outer).plan.total) == "8*n + 4"


def test_scratch_that_follows_scratch_takes_its_place() -> None:
    @tl.kernel
    def outer(x: tl.f32[n], y: tl.f32[n]):
        a = tl.alloc(tl.f32[n])
        tl.call(sums, x, a)
        tl.call(sums, a, y)

    kernel = planned(outer)
    assert str(kernel.plan.total) == "8*n + 4"
    assert len(tl.allocations(kernel.lowered)) == 1


def test_scratch_rises_through_all_callers() -> None:
    @tl.kernel
    def twice(x: tl.f32[n], y: tl.f32[n]):
        t = tl.alloc(tl.f32[n])
        tl.call(sums, x, t)
        tl.call(sums, t, y)

    @tl.kernel
    def outer(x: tl.f32[n], y: tl.f32[n]):
        tl.call(twice, x, y)

    kernel = planned(outer)
    assert str(kernel.plan.total) == "8*n + 4"
    assert "malloc" not in kernel.llvm
    assert "aligned_alloc" not in kernel.llvm


def test_scratch_in_a_loop_is_hoisted_out_of_it() -> None:
    @tl.kernel
    def outer(x: tl.f32[n], y: tl.f32[n]):
        for _ in range(3):
            tl.call(sums, x, y)

    (arena,) = tl.allocations(planned(outer).lowered)
    assert str(arena.bytes) == "4*n + 4"


def test_each_parallel_iteration_has_scratch_of_its_own() -> None:
    @tl.kernel
    def rows(x: tl.f32[n, m], y: tl.f32[n, m]):
        for i in tl.parallel(n):
            row = tl.view(x, tl.f32[m], byte_offset=4 * m * i)
            out = tl.view(y, tl.f32[m], byte_offset=4 * m * i)
            tl.call(sums, row, out)

    x = np.ones((200, 300), np.float32)
    y = np.zeros_like(x)
    tl.compile(rows, target=tl.Target.host())(x, y)
    assert np.array_equal(y, np.cumsum(x, axis=1, dtype=np.float32))


def test_a_dim_that_may_be_zero_calls_a_function_for_empty_arrays() -> None:
    """In `fold`, storage is planned on the ground that there is at least one element: `a` fits into `b`."""

    @tl.kernel
    def fold(x: tl.f32[n], y: tl.f32[1]):
        a = tl.alloc(tl.f32[300])
        b = tl.alloc(tl.f32[300 * n])
        for i in range(300):
            a[i] = y[0] + i
        for i in range(300):
            y[0] += a[i]
        for i in range(300 * n):
            b[i] = x[i // 300]
        for i in range(300 * n):
            y[0] += b[i]

    @tl.kernel
    def tail(x: tl.f32[n], rest: tl.f32[1], y: tl.f32[1]):
        without_first = tl.view(x, tl.f32[n - 1], byte_offset=4)
        tl.call(fold, without_first, y)

    for size in (1, 3):
        compiled, interpreted = np.ones(1, np.float32), np.ones(1, np.float32)
        x = np.ones(size, np.float32)
        tail(x, np.zeros(1, np.float32), compiled)
        tail.interpret(x, np.zeros(1, np.float32), interpreted)
        assert compiled == interpreted
    assert 'n = tl.dim("n", min=0)' in str(tail.lowered)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_element_wise_calls_go_in_place(strategy: str) -> None:
    @tl.kernel
    def residual(x: tl.f32[n], y: tl.f32[n]):
        a = tl.alloc(tl.f32[n])
        b = tl.alloc(tl.f32[n])
        c = tl.alloc(tl.f32[n])
        tl.call(relu, x, a)
        tl.call(reverse, a, b)
        tl.call(add, a, b, c)
        tl.call(relu, c, y)

    kernel = planned(residual, strategy)
    # TVM's rule takes no buffer that a call mentions.
    assert str(kernel.plan.total) == ("12*n" if strategy in ("none", "tvm") else "8*n")
    assert str(planned(residual, strategy, in_place=False).plan.total) == "12*n"


def test_a_callee_on_shared_bytes_is_compiled_without_claims() -> None:
    @tl.kernel
    def chain(x: tl.f32[n], y: tl.f32[n]):
        a = tl.alloc(tl.f32[n])
        b = tl.alloc(tl.f32[n])
        tl.call(relu, x, a)
        tl.call(relu, a, b)
        tl.call(reverse, b, y)

    kernel = planned(chain, "share")
    assert str(kernel.plan.total) == "4*n"
    assert kernel.llvm.count("define internal fastcc") == 3
    assert kernel.llvm.count("(ptr align 4 %p0, ptr align 4 %p1") == 1


def test_the_check_sees_a_call_that_reads_what_another_buffer_was_stored_over() -> None:
    func = tl.parse("""
n = tl.dim("n")

@tl.kernel
def reverse(x: tl.f32[n], y: tl.f32[n]):
    for i in range(n):
        y[i] = x[n - 1 - i]

n = tl.dim("n")

@tl.kernel
def outer(x: tl.f32[n], y: tl.f32[n]):
    a = tl.alloc(tl.f32[n])
    b = tl.alloc(tl.f32[n])
    tl.call(reverse, x, a)
    tl.call(reverse, a, b)
    tl.call(reverse, b, y)
""")
    first, second, *calls = func.body.stmts
    shared = tl.ir.View(second.buffer, first.buffer, tl.ir.const(0, tl.i64))
    wrong = func.replaced(body=tl.ir.seq(first, shared, *calls))
    verdict = tl.analysis.check_storage(func, wrong)
    assert not verdict
    assert str(verdict) == "`a` is read after `b` was stored over its bytes"


@tl.kernel
def product(a: tl.f32[n, m], b: tl.f32[m, n], y: tl.f32[n, n]):
    for i in range(n):
        for j in range(n):
            total = tl.f32(0)
            for p in tl.reduce(m):
                total += a[i, p] * b[p, j]
            y[i, j] = total


@tl.kernel
def products(a: tl.f32[n, m], b: tl.f32[m, n], y: tl.f32[n, n], z: tl.f32[n, n]):
    tl.call(product, a, b, y)
    tl.call(product, a, b, z)


def test_callees_are_scheduled_as_other_functions_are() -> None:
    lowered = str(products.lowered)
    assert lowered.count("def product(") == 1
    assert "b_packed" in lowered.partition("def products")[0]
    assert "tl.parallel" in lowered.partition("def products")[0]


@pytest.mark.parametrize("choices", [{"schedule": None}, {"debug": True}], ids=["as written", "debug"])
def test_callees_run_as_written_where_their_caller_does(choices: dict[str, object]) -> None:
    assert "tl.parallel" not in str(tl.compile(products, **choices).lowered)


def test_a_schedule_is_that_of_the_outermost_function() -> None:
    @tl.kernel
    def outer(a: tl.f32[n, m], b: tl.f32[m, n], y: tl.f32[n, n]):
        tl.call(product, a, b, y)
        for k in range(n):
            y[k, k] = 0

    given = tl.schedule(outer)
    given.parallel("k")
    for schedule in (given, lambda s: s.parallel("k")):
        lowered = str(tl.compile(outer, schedule=schedule).lowered)
        assert "b_packed" in lowered
        assert "for k in tl.parallel(n)" in lowered


def test_a_loop_by_vectors_leaves_callees_that_may_go_in_place() -> None:
    """The last vector of a loop may overlap the one before, but not where that would be computed anew from itself.

    Nor are tiles of rows turned over.
    """

    @tl.kernel
    def growth(x: tl.f32[n], y: tl.f32[n]):
        for i in range(n):
            y[i] = tl.exp(x[i])

    @tl.kernel
    def outer(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        a = tl.alloc(tl.f32[n])
        b = tl.alloc(tl.f32[n])
        tl.call(growth, x, a)
        tl.call(growth, a, b)
        tl.call(relu, b, y)

    @tl.kernel
    def centre(x: tl.f32[n, m], y: tl.f32[n, m]):
        for i in range(n):
            total = tl.f32(0)
            for j in range(m):
                total += x[i, j]
            for j in range(m):
                y[i, j] = x[i, j] - total

    @tl.kernel
    def by_rows(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
        a = tl.alloc(tl.f32[n, m])
        b = tl.alloc(tl.f32[n, m])
        tl.call(centre, x, a)
        tl.call(centre, a, b)
        tl.call(centre, b, y)

    assert "tl.ramp" in str(outer.lowered)
    assert str(outer.plan.total) == "4*n"
    assert str(by_rows.plan.total) == "4*m*n"
    x = np.linspace(-3, 1, 23, dtype=np.float32)
    assert np.array_equal(outer(x), outer.interpret(x))


def test_a_transpose_that_is_called_goes_by_tiles() -> None:
    """What it reads lies at the same indices as what it writes, in another order: the two are no one array."""

    @tl.kernel
    def turned(x: tl.f32[n, m], y: tl.f32[m, n]):
        for j in range(m):
            for i in range(n):
                y[j, i] = 2 * x[i, j]

    @tl.kernel
    def outer(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
        a = tl.alloc(tl.f32[m, n])
        tl.call(turned, x, a)
        tl.call(turned, a, y)

    assert "y_columns" in str(outer.lowered)
    for shape in ((16, 16), (33, 21), (1, 40)):
        x = np.random.default_rng(0).random(shape, np.float32)
        assert np.array_equal(outer(x), outer.interpret(x))


def test_only_an_element_with_the_same_counters_may_be_overwritten_by_a_vector() -> None:
    @tl.kernel
    def crossed(x: tl.f32[n, n], y: tl.f32[n, n]):
        for i in range(n):
            for j in range(n):
                y[i, j] = tl.exp(x[j, i])

    vectors = VectorizeLoops(called=True, target="x86-64-v4")(Normalize()(crossed.ir))
    assert any(store.value.dtype.lanes > 1 for store in statements_of(vectors.body, Store))
