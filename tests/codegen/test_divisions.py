"""Divisions under conditions, in loops that LLVM vectorizes."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl

n, m = tl.dim("n"), tl.dim("m", min=0)


@tl.kernel
def chosen(x: tl.i64[n], flags: tl.u32[m], k: tl.u8, y: tl.out[tl.i32[n]]):
    for i in range(n):
        y[i] = tl.i32(1) if i < m else tl.i32(x[tl.i64(k) % n])


@tl.kernel
def divided(x: tl.i64[n], flags: tl.u32[m], k: tl.i64, y: tl.out[tl.i64[n]]):
    for i in range(n):
        if i >= m and k != 0:
            y[i] = x[i] + 1000 // k
        else:
            y[i] = -1


@pytest.mark.parametrize("count", [0, 3, 5, 16, 70])
def test_lanes_without_the_condition_do_not_decide_for_others(count: int) -> None:
    """LLVM computes what is the same in all lanes once, and would look at the condition of the first lane alone."""
    flags, place = np.zeros(count, np.uint32), np.arange(71)
    np.testing.assert_array_equal(chosen(place, flags, 200), np.where(place < count, 1, 200 % 71))


@pytest.mark.parametrize("k", [7, -7, 0, -1])
def test_a_condition_that_keeps_zero_from_dividing_holds(k: int) -> None:
    place = np.arange(71)
    wanted = np.where((place >= 5) & (k != 0), place + (1000 // k if k else 0), -1)
    np.testing.assert_array_equal(divided(place, np.zeros(5, np.uint32), k), wanted)


def test_bounds_under_a_condition_are_not_divided_without_it() -> None:
    """What an iteration of the loop around takes is estimated from them, in code with checks too."""
    rows = tl.parse("""
n = tl.dim("n")

@tl.kernel
def rows(k: tl.i64, y: tl.i64[n, n]):
    for i in range(n):
        for j in range(n):
            if k != 0:
                for e in range(n // k):
                    y[i, j] += e
""")
    for k in (0, 2):
        y = np.zeros((4, 4), np.int64)
        tl.compile(rows, debug=True)(k, y)
        assert (y == k // 2).all()
