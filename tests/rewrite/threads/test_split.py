"""SplitThreads, before and after: blocks become parallel loops, threads serial ones that are split at barriers."""

from __future__ import annotations

from textwrap import indent

import numpy as np
import pytest
from every import every
from rewrite.threads.small_kernels import kernel, outcome

import tirlite as tl
from tirlite.ir import validate
from tirlite.rewrite import Normalize, SplitThreads

STRATEGIES = ("none", "tvm", "share", "pack", "exact")


def split(func: tl.PrimFunc) -> tl.PrimFunc:
    after = SplitThreads()(Normalize()(func))
    validate(after)
    return after


def expect_split(before: str, after: str) -> None:
    """The IR, and that it means the same: interpreted and compiled, under all strategies."""
    func = kernel(before)
    divided = split(func)
    assert str(divided).strip() == str(kernel(after)).strip()
    wanted = outcome(func)
    assert outcome(divided) == wanted
    for strategy in STRATEGIES:
        compiled = tl.compile(func, strategy=strategy)
        assert outcome(compiled.lowered) == wanted
        y = np.zeros(16, np.int64)
        compiled(np.arange(1, 17), y)
        assert y.tolist() == wanted


def test_without_barriers_threads_run_in_a_serial_loop() -> None:
    expect_split(
        """
        for b in tl.thread("blockIdx.x", n // 8):
            for t in tl.thread("threadIdx.x", 8):
                y[8 * b + t] = x[8 * b + t]
        """,
        """
        for b in tl.parallel(n // 8):
            for t in range(8):
                y[8 * b + t] = x[8 * b + t]
        """,
    )


def test_at_a_barrier_the_loop_over_threads_is_split() -> None:
    expect_split(
        """
        for b in tl.thread("blockIdx.x", n // 8):
            s = tl.alloc(tl.i64[8], scope="shared")
            for t in tl.thread("threadIdx.x", 8):
                s[t] = x[8 * b + t]
                tl.barrier("shared")
                y[8 * b + t] = s[7 - t]
        """,
        """
        for b in tl.parallel(n // 8):
            s = tl.alloc(tl.i64[8], scope="shared")
            for t in range(8):
                s[t] = x[8 * b + t]
            for t in range(8):
                y[8 * b + t] = s[7 - t]
        """,
    )


def test_a_loop_around_a_barrier_moves_outside() -> None:
    expect_split(
        """
        s = tl.alloc(tl.i64[16], scope="shared")
        for t in tl.thread("threadIdx.x", 16):
            s[t] = x[t]
            for k in range(n // 4):
                tl.barrier("shared")
                y[t] = s[t ^ (1 << k)]
                tl.barrier("shared")
                s[t] += y[t]
        """,
        """
        s = tl.alloc(tl.i64[16], scope="shared")
        for t in range(16):
            s[t] = x[t]
        for k in range(n // 4):
            for t in range(16):
                y[t] = s[t ^ (1 << k)]
            for t in range(16):
                s[t] += y[t]
        """,
    )


def test_a_branch_around_a_barrier_moves_outside() -> None:
    expect_split(
        """
        s = tl.alloc(tl.i64[16], scope="shared")
        for t in tl.thread("threadIdx.x", 16):
            s[t] = x[t]
            if n > 8:
                tl.barrier("shared")
                y[t] = s[15 - t]
            else:
                y[t] = s[t]
        """,
        """
        s = tl.alloc(tl.i64[16], scope="shared")
        for t in range(16):
            s[t] = x[t]
        if n > 8:
            for t in range(16):
                y[t] = s[15 - t]
        else:
            for t in range(16):
                y[t] = s[t]
        """,
    )


def test_what_differs_between_threads_stays_inside() -> None:
    expect_split(
        """
        s = tl.alloc(tl.i64[16], scope="shared")
        for t in tl.thread("threadIdx.x", 16):
            s[t] = 0
            for k in range(t):
                if k % 2 == 0:
                    s[t] += x[k]
            tl.barrier("shared")
            y[t] = s[15 - t]
        """,
        """
        s = tl.alloc(tl.i64[16], scope="shared")
        for t in range(16):
            s[t] = 0
            for k in range(t):
                if k % 2 == 0:
                    s[t] += x[k]
        for t in range(16):
            y[t] = s[15 - t]
        """,
    )


def test_a_buffer_that_crosses_a_barrier_gets_a_copy_for_each_thread() -> None:
    expect_split(
        """
        for t in tl.thread("threadIdx.x", n):
            a = tl.alloc(tl.i64[2], scope="local")
            b = tl.alloc(tl.i64[2], scope="local")
            a[0] = x[t]
            b[1] = x[t]
            a[1] = b[1]
            tl.barrier("shared")
            y[t] = a[0] + a[1]
        """,
        """
        a = tl.alloc(tl.i64[n, 2])
        for t in range(n):
            b = tl.alloc(tl.i64[2], scope="local")
            a[t, 0] = x[t]
            b[1] = x[t]
            a[t, 1] = b[1]
        for t in range(n):
            y[t] = a[t, 0] + a[t, 1]
        """,
    )


def test_the_copies_count_in_the_plan() -> None:
    func = kernel(
        """
        for t in tl.thread("threadIdx.x", 16):
            a = tl.alloc(tl.i64[2], scope="local")
            a[0] = x[t]
            tl.barrier("shared")
            y[t] = a[0]
        """
    )
    assert tl.compile(func).plan.total == 16 * 2 * 8


def test_a_cheap_variable_is_computed_once_more_and_another_is_kept() -> None:
    expect_split(
        """
        s = tl.alloc(tl.i64[16], scope="shared")
        for t in tl.thread("threadIdx.x", 16):
            i = 15 - t
            v = x[i]
            s[t] = v
            tl.barrier("shared")
            y[i] = s[i] + v
        """,
        """
        s = tl.alloc(tl.i64[16], scope="shared")
        v = tl.alloc(tl.i64[16])
        for t in range(16):
            i = 15 - t
            v1 = x[i]
            v[t] = v1
            s[t] = v1
        for t in range(16):
            i = 15 - t
            v1 = v[t]
            y[i] = s[i] + v1
        """.replace("v1", "v_1")
        .replace("v_1 = v[t]", "v_2 = v[t]")
        .replace("s[i] + v_1", "s[i] + v_2"),
    )


def test_views_of_what_crosses_are_declared_anew() -> None:
    expect_split(
        """
        for t in tl.thread("threadIdx.x", 16):
            a = tl.alloc(tl.i64[4], scope="local")
            w = tl.view(a, tl.i64[2], byte_offset=t % 2 * 16)
            w[1] = x[t]
            tl.barrier("shared")
            y[t] = w[1]
        """,
        """
        a = tl.alloc(tl.i64[16, 4])
        for t in range(16):
            a_1 = tl.view(a, tl.i64[4], byte_offset=t * 32)
            w = tl.view(a_1, tl.i64[2], byte_offset=t % 2 * 16)
            w[1] = x[t]
        for t in range(16):
            a_2 = tl.view(a, tl.i64[4], byte_offset=t * 32)
            w_1 = tl.view(a_2, tl.i64[2], byte_offset=t % 2 * 16)
            y[t] = w_1[1]
        """,
    )


def test_axes_nest() -> None:
    expect_split(
        """
        s = tl.alloc(tl.i64[4, 4], scope="shared")
        for j in tl.thread("threadIdx.y", 4):
            r = tl.alloc(tl.i64[1], scope="local")
            r[0] = x[j]
            for i in tl.thread("threadIdx.x", 4):
                s[j, i] = x[4 * j + i]
                tl.barrier("shared")
                y[4 * j + i] = s[i, j] + r[0]
        """,
        """
        s = tl.alloc(tl.i64[4, 4], scope="shared")
        r = tl.alloc(tl.i64[4, 1])
        for j in range(4):
            r[j, 0] = x[j]
        for j in range(4):
            for i in range(4):
                s[j, i] = x[4 * j + i]
        for j in range(4):
            for i in range(4):
                y[4 * j + i] = s[i, j] + r[j, 0]
        """,
    )


def test_shared_memory_declared_by_the_threads_moves_outside() -> None:
    expect_split(
        """
        for t in tl.thread("threadIdx.x", n):
            s = tl.alloc(tl.i64[n], scope="shared")
            s[t] = x[t]
            tl.barrier("shared")
            y[t] = s[n - 1 - t]
        """,
        """
        s = tl.alloc(tl.i64[n], scope="shared")
        for t in range(n):
            s[t] = x[t]
        for t in range(n):
            y[t] = s[n - 1 - t]
        """,
    )


def test_a_bound_that_all_threads_read_is_read_once() -> None:
    expect_split(
        """
        for t in tl.thread("threadIdx.x", 16):
            y[t] = 0
            tl.barrier("shared")
            steps = x[2]
            twice = 2 * steps
            for k in range(twice):
                tl.barrier("shared")
                y[t] += y[t] + k
        """,
        """
        for t in range(16):
            y[t] = 0
        steps = x[2]
        twice = 2 * steps
        for k in range(twice):
            for t in range(16):
                y[t] += y[t] + k
        """,
    )


def test_where_there_are_no_threads_nothing_is_read_for_them() -> None:
    expect_split(
        """
        for t in tl.thread("threadIdx.x", n // 32):
            k = x[n + 5]
            for i in range(k):
                y[t] = i
                tl.barrier("shared")
        """,
        """
        if 0 < n // 32:
            k = x[n + 5]
            for i in range(k):
                for t in range(n // 32):
                    y[t] = i
        """,
    )


def test_a_kernel_with_threads_takes_empty_arrays() -> None:
    func = kernel(
        """
        for t in tl.thread("threadIdx.x", n):
            for i in range(x[0]):
                y[t] = i
                tl.barrier("shared")
        """
    )
    for debug in (False, True):
        tl.compile(func, debug=debug)(np.zeros(0, np.int64), np.zeros(0, np.int64))


def test_two_launches_one_after_the_other() -> None:
    expect_split(
        """
        for t in tl.thread("threadIdx.x", 16):
            y[t] = x[15 - t]
        tl.barrier("global")
        for t in tl.thread("threadIdx.x", 16):
            y[t] += 1
        """,
        """
        for t in range(16):
            y[t] = x[15 - t]
        for t in range(16):
            y[t] += 1
        """,
    )


@every(
    "body, code",
    [
        ("if x[t] > 3:\n    tl.barrier('shared')", "divergent-barrier"),
        ("w = tl.view(x, tl.i64[1], byte_offset=t * 8)\nif w[0] > 3:\n    tl.barrier('shared')", "divergent-barrier"),
        ("k = t + 1\nfor i in range(k):\n    tl.barrier('shared')", "divergent-barrier"),
        (
            "a = tl.alloc(tl.i64[1], scope='local')\na[0] = 3\nfor i in range(a[0]):\n    tl.barrier('shared')",
            "divergent-barrier",
        ),
        (
            "for i in range(t):\n    for j in range(2):\n        if n > 3:\n            tl.barrier('shared')",
            "divergent-barrier",
        ),
        ("for u in tl.thread('threadIdx.y', t + 1):\n    tl.barrier('shared')", "divergent-barrier"),
        ("while x[0] > 3:\n    tl.barrier('shared')", "barrier-inside"),
        ("for i in tl.vectorized(4):\n    tl.barrier('shared')", "barrier-inside"),
        ("for i in tl.parallel(4):\n    tl.barrier('shared')", "barrier-inside"),
        ("a = tl.alloc(tl.i64[t + 1])\na[t] = 1\ntl.barrier('shared')\ny[t] = a[t]", "thread-dependent-size"),
        ("a = tl.alloc(tl.i64[t + 1], scope='shared')\na[t] = 1", "thread-dependent-size"),
        ("for k in range(3):\n    a = tl.alloc(tl.i64[k + 16], scope='shared')\n    a[t] = 1", "thread-dependent-size"),
    ],
)
def test_what_cannot_be_split(body: str, code: str) -> None:
    with pytest.raises(tl.KernelError, match=code) as caught:
        split(kernel(f'for t in tl.thread("threadIdx.x", 16):\n{indent(body, "    ")}'))
    assert caught.value.messages[0].span is not None


def test_a_kernel_without_threads_stays_as_it_is() -> None:
    func = Normalize()(kernel("for i in range(n):\n    y[i] = x[i]"))
    assert SplitThreads()(func) is func


def test_two_thousand_loops_around_a_barrier_and_ten_thousand_phases() -> None:
    b = tl.ir.Builder("deep")
    y = b.param("y", tl.i64[4])
    barrier = tl.ir.Call(tl.ir.i32, tl.ir.Op.BARRIER, (tl.ir.StringImm("shared"),))
    with b.thread("t", "threadIdx.x", 4) as t:
        for _ in range(10_000):
            b.store(y, t, y[t] + 1)
            b.evaluate(barrier)
    divided = SplitThreads()(b.build())
    assert len(divided.body.stmts) == 10_000
    body = tl.ir.seq(tl.ir.Evaluate(barrier), tl.ir.Store(y, (t,), tl.ir.const(1, tl.ir.i64)))
    for depth in range(2000):
        body = tl.ir.seq(tl.ir.For(tl.ir.Var(f"i{depth}"), tl.ir.const(0, tl.ir.i64), tl.ir.const(1, tl.ir.i64), body))
    launch = b.build().body.stmts[0]
    assert isinstance(launch, tl.ir.For)
    SplitThreads()(b.build().replaced(body=tl.ir.seq(launch.replaced(body=body))))
