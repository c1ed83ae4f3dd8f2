"""InjectVirtualThreads, before and after: each statement is done for all virtual threads before the next one."""

from __future__ import annotations

import numpy as np
import pytest
from rewrite.threads.small_kernels import kernel, outcome

import tirlite as tl
from tirlite.ir import validate
from tirlite.rewrite import InjectVirtualThreads, Normalize


def injected(func: tl.PrimFunc) -> tl.PrimFunc:
    after = InjectVirtualThreads()(Normalize()(func))
    validate(after)
    return after


def expect_injected(before: str, after: str) -> None:
    """The IR, and that it means the same: interpreted and compiled."""
    func = kernel(before)
    interleaved = injected(func)
    assert str(interleaved).strip() == str(kernel(after)).strip()
    wanted = outcome(func)
    assert outcome(interleaved) == wanted
    for strategy in ("none", "tvm", "share", "pack"):
        y = np.zeros(16, np.int64)
        tl.compile(func, strategy=strategy)(np.arange(1, 17), y)
        assert y.tolist() == wanted


def test_statements_are_interleaved_and_buffers_get_an_axis() -> None:
    expect_injected(
        """
        for v in tl.thread("vthread", 2):
            a = tl.alloc(tl.i64[8])
            for i in range(8):
                a[i] = x[8 * v + i]
            for i in range(8):
                y[8 * v + i] = a[7 - i]
        """,
        """
        a = tl.alloc(tl.i64[2, 8])
        for i in range(8):
            for v in range(2):
                a[v, i] = x[8 * v + i]
        for i in range(8):
            for v in range(2):
                y[8 * v + i] = a[v, 7 - i]
        """,
    )


def test_what_differs_between_virtual_threads_stays_inside() -> None:
    expect_injected(
        """
        for v in tl.thread("vthread", 2):
            for i in range(8 * v, 8 * v + 8):
                if i % 2 == 0:
                    y[i] = x[i]
            if n > 4:
                y[v] = y[v] + 1
        """,
        """
        for v in range(2):
            for i in range(8 * v, 8 * v + 8):
                if i % 2 == 0:
                    y[i] = x[i]
        if n > 4:
            for v in range(2):
                y[v] = y[v] + 1
        """,
    )


def test_threads_inside_keep_their_loops_and_barriers_are_passed_once() -> None:
    expect_injected(
        """
        for v in tl.thread("vthread", 2):
            for t in tl.thread("threadIdx.x", 8):
                s = tl.alloc(tl.i64[8], scope="shared")
                s[t] = x[8 * v + t]
                tl.barrier("shared")
                y[8 * v + t] = s[7 - t]
        """,
        """
        for t in tl.thread("threadIdx.x", 8):
            s = tl.alloc(tl.i64[2, 8], scope="shared")
            for v in range(2):
                s[v, t] = x[8 * v + t]
            tl.barrier("shared")
            for v in range(2):
                y[8 * v + t] = s[v, 7 - t]
        """,
    )


def test_inside_threads_memory_of_the_block_gets_an_axis_too() -> None:
    expect_injected(
        """
        for t in tl.thread("threadIdx.x", 8):
            for v in tl.thread("vthread", 2):
                s = tl.alloc(tl.i64[8], scope="shared")
                s[t] = x[8 * v + t]
                tl.barrier("shared")
                y[8 * v + t] = s[7 - t]
        """,
        """
        for t in tl.thread("threadIdx.x", 8):
            s = tl.alloc(tl.i64[2, 8], scope="shared")
            for v in range(2):
                s[v, t] = x[8 * v + t]
            tl.barrier("shared")
            for v in range(2):
                y[8 * v + t] = s[v, 7 - t]
        """,
    )


def test_virtual_threads_nest() -> None:
    expect_injected(
        """
        for v in tl.thread("vthread.x", 2):
            for w in tl.thread("vthread.y", 2):
                a = tl.alloc(tl.i64[4])
                for i in range(4):
                    a[i] = x[8 * v + 4 * w + i]
                for i in range(4):
                    y[8 * v + 4 * w + i] = a[3 - i]
        """,
        """
        a = tl.alloc(tl.i64[2, 2, 4])
        for i in range(4):
            for v in range(2):
                for w in range(2):
                    a[v, w, i] = x[8 * v + 4 * w + i]
        for i in range(4):
            for v in range(2):
                for w in range(2):
                    y[8 * v + 4 * w + i] = a[v, w, 3 - i]
        """,
    )


def test_a_barrier_that_not_all_virtual_threads_come_to() -> None:
    with pytest.raises(tl.KernelError, match="divergent-barrier"):
        injected(kernel('for v in tl.thread("vthread", 2):\n    if v > 0:\n        tl.barrier("shared")'))


@pytest.mark.parametrize("later", [tl.passes.StorageRewrite(), tl.passes.SplitThreads()], ids=lambda each: each.name)
def test_later_passes_name_the_one_that_is_missing(later: tl.passes.Pass) -> None:
    func = kernel('for v in tl.thread("vthread", 2):\n    y[v] = x[v]')
    with pytest.raises(tl.KernelError, match="InjectVirtualThreads"):
        later(func)
    assert later(injected(func)) is not None


def test_a_kernel_without_virtual_threads_stays_as_it_is() -> None:
    func = Normalize()(kernel("for i in range(n):\n    y[i] = x[i]"))
    assert InjectVirtualThreads()(func) is func


def test_windows_on_memory_that_all_see() -> None:
    # What each thread reads at a place of its own differs; what all read at one place is declared for all of them.
    expect_injected(
        """
        for v in tl.thread("vthread", 2):
            all = tl.view(x, tl.i64[1], byte_offset=8)
            own = tl.view(x, tl.i64[1], byte_offset=v * 8)
            if all[0] == 2:
                y[v] = own[0]
            if own[0] == 2:
                y[v + 4] = all[0]
        """,
        """
        all = tl.view(x, tl.i64[1], byte_offset=8)
        for v in range(2):
            own = tl.view(x, tl.i64[1], byte_offset=v * 8)
        if all[0] == 2:
            for v in range(2):
                own = tl.view(x, tl.i64[1], byte_offset=v * 8)
                y[v] = own[0]
        for v in range(2):
            own = tl.view(x, tl.i64[1], byte_offset=v * 8)
            if own[0] == 2:
                y[v + 4] = all[0]
        """,
    )


@pytest.mark.parametrize("strategy", ["none", "tvm", "share"])
def test_a_view_that_a_condition_of_all_threads_reads_is_declared_before_them(strategy: str) -> None:
    text = """
n = tl.dim("n")

@tl.kernel
def seen(x: tl.i32[n], z: tl.i8[n + 1]):
    kept = tl.alloc(tl.u16[3, 3], scope="shared")
    for t in tl.thread("vthread", 3):
        w = tl.view(z, tl.i8[n + 1])
        if w[1] > 0:
            x[0] = 1
"""
    x = np.zeros(2, np.int32)
    tl.compile(tl.parse(text), strategy=strategy)(x, np.ones(3, np.int8))
    assert x[0] == 1


def test_where_there_are_no_virtual_threads_nothing_is_read_for_them() -> None:
    expect_injected(
        """
        for v in tl.thread("vthread", n // 32):
            for i in range(x[n + 5]):
                y[v] = i
        """,
        """
        if 0 < n // 32:
            for i in range(x[n + 5]):
                for v in range(n // 32):
                    y[v] = i
        """,
    )


def test_a_barrier_among_them_stays_and_what_is_around_it_is_guarded() -> None:
    expect_injected(
        """
        for v in tl.thread("vthread", n // 32):
            y[v] = 1
            tl.barrier("warp")
            if x[n + 5] > 3:
                y[v] = 2
            y[v + 1] = 3
        """,
        """
        for v in range(n // 32):
            y[v] = 1
        tl.barrier("warp")
        if 0 < n // 32:
            if x[n + 5] > 3:
                for v in range(n // 32):
                    y[v] = 2
            for v in range(n // 32):
                y[v + 1] = 3
        """,
    )


def test_a_barrier_in_a_loop_of_all_threads_is_not_reached_where_there_are_none() -> None:
    expect_injected(
        """
        for v in tl.thread("vthread", n // 32):
            for i in range(x[n + 5]):
                y[v] = i
                tl.barrier("warp")
        """,
        """
        if 0 < n // 32:
            for i in range(x[n + 5]):
                for v in range(n // 32):
                    y[v] = i
                tl.barrier("warp")
        """,
    )


def test_a_barrier_stays_open_to_the_threads_around() -> None:
    func = kernel(
        """
        for t in tl.thread("threadIdx.x", 4):
            for v in tl.thread("vthread", t + 1):
                if v == 0:
                    y[t] = x[t]
                tl.barrier("warp")
        """
    )
    y = np.zeros(16, np.int64)
    tl.compile(func)(np.arange(1, 17), y)
    assert y.tolist() == [1, 2, 3, 4, *[0] * 12]


def test_what_threads_declare_and_use_behind_a_barrier_is_guarded_as_a_whole() -> None:
    expect_injected(
        """
        for v in tl.thread("vthread", n // 32):
            t = tl.alloc(tl.i64[n])
            if x[n + 5] > 3:
                t[v] = 2
            tl.barrier("warp")
            y[v] = t[v]
        """,
        """
        if 0 < n // 32:
            t = tl.alloc(tl.i64[n // 32, n])
            if x[n + 5] > 3:
                for v in range(n // 32):
                    t[v, v] = 2
            tl.barrier("warp")
            for v in range(n // 32):
                y[v] = t[v, v]
        """,
    )
