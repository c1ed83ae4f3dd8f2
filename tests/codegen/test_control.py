"""Loops, branches and short circuits in native code."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite.ir.builder import Builder

LAST = 2**63 - 1

n = tl.dim("n")


@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [
        (0, 10, 1),
        (0, 10, 3),
        (3, 3, 1),
        (5, 3, 1),
        (9, -1, -1),
        (9, 0, -4),
        (0, 5, -1),
        (LAST - 5, LAST, 1),
        (LAST - 5, LAST, 4),
        (-LAST - 1, -LAST + 4, 2),
        (-LAST + 4, -LAST - 1, -1),
        (-LAST + 4, -LAST - 1, -3),
        (-LAST - 1, LAST, 2**62),
        (LAST, -LAST - 1, -(2**62)),
    ],
)
def test_a_loop_runs_over_its_range_up_to_the_ends_of_i64(start: int, stop: int, step: int) -> None:
    for known in (True, False):
        b = Builder("visit")
        first, last = b.param("first", tl.i64), b.param("last", tl.i64)
        seen = b.param("seen", tl.i64[32])
        count = b.param("count", tl.i64[1])
        with b.for_("i", start if known else first, stop if known else last, step) as i:
            b.store(seen, count[0], i)
            b.store(count, 0, count[0] + 1)
        seen, count = np.zeros(32, np.int64), np.zeros(1, np.int64)
        tl.compile(b.build())(start, stop, seen, count)
        expected = list(range(start, stop, step))
        assert seen[: count[0]].tolist() == expected


@tl.kernel
def collatz(x: tl.i64[n], y: tl.out[tl.i64[n]]):
    for i in range(n):
        v = x[i]
        steps = 0
        while v != 1:
            if v % 2 == 0:
                v = v // 2
            else:
                v = 3 * v + 1
            steps += 1
        y[i] = steps


def test_while_and_if() -> None:
    assert collatz(np.array([1, 2, 3, 7, 27])).tolist() == [0, 1, 7, 16, 111]


@tl.kernel
def shift(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for i in range(n):
        y[i] = x[i - 1] if i > 0 else x[n - 1] * 2


def test_only_the_chosen_side_of_a_conditional_is_loaded() -> None:
    as_written = tl.compile(shift, schedule=None)
    for kernel in (shift, as_written):
        assert kernel(np.array([1, 2, 3], np.float32)).tolist() == [6, 1, 2]
    assert as_written.llvm.count("phi float") == 1


@tl.kernel
def first_zero(x: tl.i32[n], y: tl.out[tl.i64[1]]):
    i = 0
    while i < n and x[i] != 0:
        i += 1
    y[0] = i


def test_and_keeps_the_load_behind_its_bound() -> None:
    assert first_zero(np.array([3, 0, 1], np.int32)).tolist() == [1]
    assert first_zero(np.array([3], np.int32)).tolist() == [1]
    assert "phi i1" in first_zero.llvm


@tl.kernel
def inside(x: tl.i64[n], y: tl.out[tl.bool_[n]]):
    for i in range(n):
        v = x[i]
        y[i] = 2 <= v < 5 or v == 9


def test_cheap_conditions_need_no_branch() -> None:
    assert inside(np.arange(10)).tolist() == [2 <= i < 5 or i == 9 for i in range(10)]
    assert "phi i1" not in inside.llvm


@tl.kernel
def kinds(x: tl.f32[n], y: tl.out[tl.f32[6, n]]):
    for i in range(n):
        y[0, i] = x[i]
    for i in tl.parallel(n):
        y[1, i] = x[i] + 1
    for i in tl.vectorized(n):
        y[2, i] = x[i] + 2
    for i in tl.unroll(n):
        y[3, i] = x[i] + 3
    for i in tl.thread("threadIdx.x", n):
        y[4, i] = x[i] + 4
    for i in range(n):
        for j in tl.unroll(5, 6):
            y[j, i] = x[i] + j


def test_all_kinds_of_loops_give_the_same(capfd: pytest.CaptureFixture[str]) -> None:
    x = np.arange(37, dtype=np.float32)
    np.testing.assert_array_equal(kinds(x), x + np.arange(6, dtype=np.float32)[:, None])
    assert capfd.readouterr().err == ""


@tl.kernel
def checked(x: tl.i64[n], y: tl.i64[n]):
    for i in range(n):
        assert x[i] >= 0, "only natural numbers"
        y[i] = x[i]
        assert x[i] < 100


def test_an_assert_stops_the_kernel_where_it_stands() -> None:
    y = np.full(3, -7)
    with pytest.raises(tl.KernelAssertionError, match="only natural numbers") as caught:
        checked(np.array([5, -1, 6]), y)
    assert y.tolist() == [5, -7, -7]
    assert "test_control.py" in str(caught.value)
    assert "assert x[i] >= 0" in str(caught.value)
    with pytest.raises(tl.KernelAssertionError, match="assert x\\[i\\] < 100"):
        checked(np.array([5, 100, 6]), y)
    assert y.tolist() == [5, 100, -7]


@pytest.mark.parametrize(("dtype", "is_scalar"), [("u8", True), ("u16", True), ("f32", False)])
def test_small_elements_are_looked_up_one_by_one(dtype: str, is_scalar: bool) -> None:
    """LLVM has no instruction that gathers them, and takes vectors of indices apart."""
    func = tl.parse(
        f"""
n = tl.dim("n")

@tl.kernel
def f(x: tl.u8[n], t: tl.{dtype}[256], y: tl.{dtype}[n]):
    for i in range(n):
        y[i] = t[x[i]]
"""
    )
    assert ("llvm.loop.vectorize.width" in tl.compile(func).llvm) is is_scalar


@pytest.mark.parametrize(
    ("body", "is_scalar"),
    [
        ("v = x[i]\n        y[i] = t[v]", True),
        ("v = tl.i64(x[i]) // 2\n        w = t[v]\n        y[i] = w", True),
        ("y[i] = (t[x[i]] * 3 + 5) >> 1 & 15", True),
        ("z[i] = tl.f32(t[x[i]]) * 2", True),
        ("z[i] = tl.f32(t[x[i]]) * tl.f32(t[x[i]]) + tl.f32(t[x[i]]) * 2 - z[i] * 3", False),
        ("z[i] = tl.exp(tl.f32(t[x[i]]))", False),
    ],
)
def test_small_elements_are_looked_up_by_vectors_for_much_to_compute(body: str, is_scalar: bool) -> None:
    func = tl.parse(
        f"""
n = tl.dim("n")

@tl.kernel
def f(x: tl.u8[n], t: tl.u8[256], y: tl.u8[n], z: tl.f32[n]):
    for i in range(n):
        {body}
"""
    )
    assert ("llvm.loop.vectorize.width" in tl.compile(func).llvm) is is_scalar


def test_one_of_two_neighbours_is_picked_without_a_branch() -> None:
    """Both are in bounds for all values, so both may be loaded."""

    @tl.kernel
    def upwind(x: tl.f32[n + 2], speed: tl.f32[n], y: tl.out[tl.f32[n]]):
        for i in range(n):
            y[i] = x[i + 1] - x[i] if speed[i] > 0 else x[i + 2] - x[i + 1]

    made = tl.compile(upwind, schedule=None)
    assert " select " in made.llvm
    assert "then" not in made.llvm
    x, speed = np.arange(7, dtype=np.float32) ** 2, np.float32([1, -1, 0, np.nan, 1])
    np.testing.assert_array_equal(made(x, speed), made.interpret(x, speed))


@pytest.mark.parametrize("read", ["x[i - 1] if i > 0 else x[i]", "x[at[i]] if at[i] < n else x[i]"])
def test_what_a_test_keeps_in_bounds_is_not_loaded_without_it(read: str) -> None:
    source = f"""
n = tl.dim("n")

@tl.kernel
def f(x: tl.f32[n], at: tl.u8[n], y: tl.f32[n]):
    for i in range(n):
        y[i] = {read}
"""
    assert "then" in tl.compile(tl.parse(source), schedule=None).llvm
