"""Thread-bound loops: blocks one after the other, the threads of a block from barrier to barrier."""

from __future__ import annotations

from textwrap import dedent, indent

import numpy as np
import pytest

import tirlite as tl
from tirlite.interp import interpret

HEADER = 'n = tl.dim("n")\n\n@tl.kernel\ndef f(x: tl.i64[n], y: tl.i64[n]):\n'


def parsed(body: str) -> tl.PrimFunc:
    return tl.parse(HEADER + indent(dedent(body).strip(), "    "))


def result(body: str, size: int = 8) -> list[int]:
    func = parsed(body)
    x, y = np.arange(1, size + 1), np.zeros(size, np.int64)
    interpret(func, {func.params[0]: x, func.params[1]: y, func.dims[0]: size})
    return y.tolist()


def test_threads_exchange_values_through_shared_memory_and_a_barrier() -> None:
    assert result(
        """
        for b in tl.thread("blockIdx.x", n // 4):
            s = tl.alloc(tl.i64[4], scope="shared")
            for t in tl.thread("threadIdx.x", 4):
                s[t] = x[4 * b + t]
                tl.barrier("shared")
                y[4 * b + t] = s[3 - t]
        """
    ) == [4, 3, 2, 1, 8, 7, 6, 5]


def test_without_the_barrier_one_may_read_what_another_has_not_written_yet() -> None:
    body = """
        s = tl.alloc(tl.i64[8], scope="shared")
        for t in tl.thread("threadIdx.x", 8):
            s[t] = x[t]
            y[t] = s[7 - t]
        """
    for run in (result, lambda body: tl.compile(parsed(body), debug=True)(np.arange(8), np.zeros(8, np.int64))):
        with pytest.raises(
            tl.KernelRunError, match=r'`s\[7\]`, which was never written\n(?s:.*) a `tl.barrier\("shared'
        ):
            run(body)


def test_without_the_barrier_they_conflict() -> None:
    with pytest.raises(tl.KernelRunError, match=r"thread \(1\) and thread \(0\) conflict on s\[0\]"):
        result(
            """
            s = tl.alloc(tl.i64[4], scope="shared")
            for t in tl.thread("threadIdx.x", 4):
                s[t] = x[t]
                y[t] = s[t // 2]
            """
        )


@pytest.mark.parametrize(
    ("body", "conflict"),
    [
        ("y[0] = x[t]", "two write"),
        ("if t == 0:\n    y[0] = 1\nelse:\n    y[t] = y[0]", "one writes and another reads later"),
        ("if t == 3:\n    y[0] = 1\nelse:\n    y[t + 1] = y[0]", "one reads and another writes later"),
        ("k = y[0]\nif t == 2:\n    y[0] = k", "several have read, the writer among them"),
        ("v = tl.view(y, tl.i8[8])\nv[t // 2] = 1", "bytes count, whatever they are called"),
    ],
)
def test_a_conflict_is_seen_in_whatever_order_the_threads_come(body: str, conflict: str) -> None:
    assert conflict
    with pytest.raises(tl.KernelRunError, match="thread-conflict"):
        result(f'for t in tl.thread("threadIdx.x", 4):\n{indent(body, "    ")}')


def test_bytes_side_by_side_are_no_conflict() -> None:
    assert result(
        """
        v = tl.view(y, tl.i8[8])
        for t in tl.thread("threadIdx.x", 8):
            v[t] = 1
        """
    )[0] == int.from_bytes(bytes([1] * 8), "little")


def test_many_may_read_what_nobody_writes() -> None:
    assert result('for t in tl.thread("threadIdx.x", 8):\n    y[t] = x[0] + x[1]') == [3] * 8


def test_shared_memory_is_one_copy_a_block_wherever_it_is_declared() -> None:
    assert result(
        """
        for t in tl.thread("threadIdx.x", 8):
            s = tl.alloc(tl.i64[8], scope="shared")
            s[t] = x[t]
            tl.barrier("shared")
            y[t] = s[7 - t]
        """
    ) == [8, 7, 6, 5, 4, 3, 2, 1]


def test_shared_memory_declared_in_a_loop_is_new_in_each_iteration() -> None:
    with pytest.raises(tl.KernelRunError, match="never written"):
        result(
            """
            for t in tl.thread("threadIdx.x", 8):
                for k in range(2):
                    s = tl.alloc(tl.i64[8], scope="shared")
                    if k == 0:
                        s[t] = x[t]
                    y[t] = s[t]
                    tl.barrier("shared")
            """
        )


@pytest.mark.parametrize("scope", ["local", "global"])
def test_other_memory_is_one_copy_a_thread_if_declared_by_the_thread(scope: str) -> None:
    assert result(
        f"""
        for t in tl.thread("threadIdx.x", 8):
            a = tl.alloc(tl.i64[1], scope="{scope}")
            a[0] = x[t]
            tl.barrier("shared")
            y[t] = a[0]
        """
    ) == list(range(1, 9))


def test_memory_declared_outside_is_one_for_all() -> None:
    with pytest.raises(tl.KernelRunError, match="conflict on a"):
        result(
            """
            a = tl.alloc(tl.i64[1])
            for t in tl.thread("threadIdx.x", 8):
                a[0] = x[t]
            """
        )


def test_threads_of_several_axes_meet_at_one_barrier() -> None:
    assert result(
        """
        s = tl.alloc(tl.i64[2, 4], scope="shared")
        for j in tl.thread("threadIdx.y", 2):
            k = 4 * j
            for i in tl.thread("threadIdx.x", 4):
                s[j, i] = x[k + i]
                tl.barrier("shared")
                y[k + i] = s[1 - j, 3 - i]
        """
    ) == [8, 7, 6, 5, 4, 3, 2, 1]


def test_a_thread_waits_for_those_that_it_forks() -> None:
    assert result(
        """
        s = tl.alloc(tl.i64[8], scope="shared")
        for j in tl.thread("threadIdx.y", 2):
            s[4 * j] = x[j]
            for i in tl.thread("threadIdx.x", 3):
                s[4 * j + 1 + i] = s[4 * j] + i
            for i in tl.thread("threadIdx.x", 4):
                y[4 * j + i] = s[4 * j + 3 - i]
        """
    ) == [3, 2, 1, 1, 4, 3, 2, 2]


def test_a_barrier_in_a_loop_that_all_run_alike() -> None:
    assert (
        result(
            """
        s = tl.alloc(tl.i64[8], scope="shared")
        for t in tl.thread("threadIdx.x", 8):
            s[t] = x[t]
            for k in range(3):
                tl.barrier("shared")
                other = s[t ^ (1 << k)]
                tl.barrier("shared")
                s[t] = s[t] + other
            y[t] = s[t]
        """
        )
        == [36] * 8
    )


def test_a_barrier_that_some_threads_miss() -> None:
    with pytest.raises(tl.KernelRunError, match=r"thread \(0\) waits at a barrier, and thread \(7\) has ended"):
        result(
            """
            for t in tl.thread("threadIdx.x", 8):
                if t < 4:
                    tl.barrier("shared")
            """
        )
    with pytest.raises(tl.KernelRunError, match=r"thread \(0\) waits at a barrier, and thread \(4\) waits at another"):
        result(
            """
            for t in tl.thread("threadIdx.x", 8):
                if t < 4:
                    tl.barrier("shared")
                else:
                    tl.barrier("shared")
            """
        )


def test_no_threads_do_nothing() -> None:
    assert result('for t in tl.thread("threadIdx.x", n - 8):\n    y[0] = 1\n    tl.barrier("shared")') == [0] * 8


def test_a_loop_over_blocks_inside_one_over_threads() -> None:
    with pytest.raises(tl.KernelError, match="thread-nesting"):
        result(
            """
            for t in tl.thread("threadIdx.x", 8):
                for b in tl.thread("blockIdx.x", 8):
                    y[b] = x[b]
            """
        )
    with pytest.raises(tl.KernelError, match="thread-nesting"):
        result(
            """
            for t in tl.thread("threadIdx.x", 8):
                for u in tl.thread("threadIdx.x", 8):
                    y[u] = x[u]
            """
        )


def test_many_threads_and_many_barriers() -> None:
    assert result(
        """
        for t in tl.thread("threadIdx.x", 64):
            for k in range(50):
                tl.barrier("shared")
                if t == k % 64:
                    y[k % 8] = y[k % 8] + t
        """
    ) == [sum(k for k in range(50) if k % 8 == each) for each in range(8)]


def test_blocks_that_touch_one_element_conflict() -> None:
    with pytest.raises(tl.KernelRunError, match="iteration-conflict"):
        result(
            """
            for b in tl.thread("blockIdx.x", 2):
                for t in tl.thread("threadIdx.x", 4):
                    y[t] = x[4 * b + t]
            """
        )
