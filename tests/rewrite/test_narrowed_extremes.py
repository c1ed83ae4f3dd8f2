"""Minima and maxima of widened integers are taken in the type that they are stored in."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl

n, m = tl.dims("n m")

AT_ONCE = "cost = 1 if a[i - 1] != b[j - 1] else 0"
BY_BRANCHES = """if a[i - 1] == b[j - 1]:
                cost = 0
            else:
                cost = 1"""


@pytest.mark.parametrize("cost", [AT_ONCE, BY_BRANCHES])
def test_distances_are_taken_in_the_type_of_the_table(cost: str) -> None:
    kernel = tl.compile(
        tl.parse(f"""
n, m = tl.dims("n m")

@tl.kernel
def distances(a: tl.u8[n], b: tl.u8[m], d: tl.i32[n + 1, m + 1]):
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            {cost}
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
""")
    )
    assert "tl.i64(d[i, j - 1]" not in str(kernel.lowered)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 3, count).astype(np.uint8) for count in (9, 14))
    for top in (0, 2**31 - 5, -(2**31)):  # the largest one wraps around, as it is written
        ours = np.full((10, 15), top, np.int32)
        ours[0], ours[:, 0] = top + np.arange(15) // 4, top + np.arange(10) // 3
        theirs = ours.copy()
        kernel(a, b, ours)
        kernel.interpret(a, b, theirs)
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    "value",
    [
        "min(tl.i64(x[i]) + 1, tl.i64(y[i]))",
        "max(tl.i64(x[i]) - tl.i64(z[i]), tl.i64(y[i]))",
        "min(max(tl.i64(x[i]) - tl.i64(y[i]), tl.i64(y[i])), tl.i64(x[i]))",
        "max(min(tl.i64(x[i]) + tl.i64(y[i]), 5000000000), min(tl.i64(z[i]), tl.i64(x[i])))",
        "min(w[i], tl.i64(y[i]))",
    ],
)
def test_values_at_the_ends_of_a_type_stay_the_same(value: str) -> None:
    kernel = tl.compile(
        tl.parse(f"""
n = tl.dim("n")

@tl.kernel
def extremes(x: tl.i32[n], y: tl.i32[n], z: tl.u8[n], w: tl.i64[n], r: tl.i32[n]):
    for i in range(n):
        r[i] = tl.i32({value})
""")
    )
    ends = np.array([-(2**31), -(2**31) + 1, -1, 0, 1, 2**31 - 2, 2**31 - 1], np.int32)
    x, y, z = (each.ravel() for each in np.meshgrid(ends, ends, np.array([0, 1, 255], np.uint8)))
    w = np.resize(np.array([-(2**63), -(2**31) - 1, 0, 2**31, 2**63 - 1]), x.size)
    ours, theirs = np.zeros_like(x), np.zeros_like(x)
    kernel(x, y, z, w, ours)
    kernel.interpret(x, y, z, w, theirs)
    np.testing.assert_array_equal(ours, theirs)
