"""What the interpreter sees of iterations of a parallel loop that conflict."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl

n, m = tl.dims("n m")


@tl.kernel
def scatter(x: tl.f32[n], at: tl.i64[n], y: tl.f32[n]):
    for i in tl.parallel(n):
        y[at[i]] = x[i]


@tl.kernel
def gather(x: tl.f32[n], at: tl.i64[n]):
    for i in tl.parallel(n):
        x[i] = x[at[i]] * 2


X = np.arange(4, dtype=np.float32)


def test_two_writes_of_one_element_conflict_even_of_one_value() -> None:
    with pytest.raises(tl.KernelRunError, match=r"`y\[2\]` is written by iteration i = 3 and written by i = 0"):
        scatter.interpret(np.ones(4, np.float32), np.array([2, 1, 0, 2]), X.copy())


def test_a_permutation_is_fine() -> None:
    y = np.zeros(4, np.float32)
    scatter.interpret(X, np.array([2, 1, 0, 3]), y)
    assert y.tolist() == [2, 1, 0, 3]


def test_reading_what_another_iteration_wrote_conflicts() -> None:
    with pytest.raises(tl.KernelRunError, match=r"`x\[1\]` is read by iteration i = 3 and written by i = 1"):
        gather.interpret(X.copy(), np.array([0, 1, 2, 1]))


def test_writing_what_any_other_iteration_read_conflicts() -> None:
    with pytest.raises(tl.KernelRunError, match=r"`x\[2\]` is written by iteration i = 2 and read by i = 0"):
        gather.interpret(X.copy(), np.array([2, 1, 2, 3]))


def test_vectorized_iterations_conflict_too() -> None:
    @tl.kernel
    def counted(at: tl.i64[n], y: tl.f32[m]):
        for i in tl.vectorized(n):
            y[at[i]] += 1

    with pytest.raises(tl.KernelRunError, match=r"`y\[2\]` is read by iteration i = 3 and written by i = 0"):
        counted.interpret(np.array([2, 1, 0, 2]), X.copy())


def test_bytes_count_not_buffers() -> None:
    @tl.kernel
    def mixed(x: tl.f32[4], at: tl.i64[4]):
        parts = tl.view(x, tl.u8[16], byte_offset=0)
        for i in tl.parallel(4):
            parts[at[i]] = tl.u8(i)
            x[i] = 1

    mixed.interpret(X.copy(), np.array([0, 4, 9, 15]))
    with pytest.raises(tl.KernelRunError, match=r"`x\[2\]` is written by iteration i = 2 and written by i = 1"):
        mixed.interpret(X.copy(), np.array([0, 8, 9, 15]))


def test_what_each_iteration_allocates_is_its_own_and_runs_of_the_loop_are_apart() -> None:
    @tl.kernel
    def sums(x: tl.f32[n, m], y: tl.out[tl.f32[n]]):
        for _ in range(2):
            for i in tl.parallel(n):
                total = tl.alloc(tl.f32[1])
                total[0] = 0
                for j in range(m):
                    total[0] += x[i, j]
                y[i] = total[0]

    x = np.ones((3, 4), np.float32)
    for strategy in ("none", "share", "pack"):
        assert tl.compile(sums, strategy=strategy).interpret(x).tolist() == [4, 4, 4]


def test_nested_loops_are_watched_each_for_itself() -> None:
    @tl.kernel
    def inner(x: tl.f32[n, m], at: tl.i64[m], y: tl.f32[n, m]):
        for i in tl.parallel(n):
            row = tl.alloc(tl.f32[m])
            for j in tl.parallel(m):
                row[at[j]] = x[i, j]
            for j in range(m):
                y[i, j] = row[j]

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    y = np.zeros_like(x)
    inner.interpret(x, np.array([2, 1, 0]), y)
    np.testing.assert_array_equal(y, x[:, ::-1])
    with pytest.raises(tl.KernelRunError, match=r"`row\[1\]` is written by iteration j = 2 and written by j = 1"):
        inner.interpret(x, np.array([2, 1, 1]), y)


def test_calls_of_functions_are_watched() -> None:
    @tl.kernel
    def bump(x: tl.f32[1]):
        x[0] = x[0] + 1

    @tl.kernel
    def calls(x: tl.f32[4]):
        one = tl.view(x, tl.f32[1], byte_offset=0)
        tl.call(bump, one)
        for _ in tl.parallel(2):
            tl.call(bump, one)

    with pytest.raises(tl.KernelRunError, match=r"is read by iteration .* = 1 and written by .* = 0"):
        calls.interpret(X.copy())
