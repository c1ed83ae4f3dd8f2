"""Lanes take a row each where rows are short, and many: what a reduction combines needs no sum over lanes."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import tirlite as tl
from tirlite.rewrite import Normalize, VectorizeLoops

n, m, k = tl.dims("n m k")
V4 = tl.Target("x86-64-v4")


def vectorized(source: str, target: str = "x86-64-v4") -> str:
    return str(VectorizeLoops(target=target)(Normalize()(tl.parse(source))))


SUMS = """
n, m, k = tl.dims("n m k")

@tl.kernel
def f(x: tl.f32[n, m], z: tl.f32[m], at: tl.i64[n + 1], y: tl.f32[n, m], s: tl.out[tl.f32[n]]):
    for i in range(n):
        total = tl.f32(0)
        for j in tl.reduce({bounds}):
            total += {term}
        most = tl.f32(0)
        for j in tl.reduce({bounds}):
            most = max(most, {term})
        {end}
"""


def test_a_row_is_turned_over_once_for_all_that_reads_it() -> None:
    found = vectorized(SUMS.format(bounds="m", term="x[i, j] * z[j] + x[i, j]", end="s[i] = total - most"))
    assert found.count("tl.alloc(tl.f32[48, 32]") == 1
    wanted = """\
            for j in range(m):
                total[tl.ramp(0, 1, 32)] = total[tl.ramp(0, 1, 32)] + (x_columns[j, tl.ramp(0, 1, 32)] * \
tl.broadcast(z[j], 32) + x_columns[j, tl.ramp(0, 1, 32)])
"""
    assert "if n >= 32 and m <= 48:" in found
    assert wanted in found


@pytest.mark.parametrize(
    ("bounds", "term", "end"),
    [
        ("at[i], at[i + 1]", "x[i, j]", "s[i] = total - most"),  # rows of their own lengths
        ("m", "z[j]", "s[i] = total - most"),  # no rows at all
        ("m", "x[i, j] + y[i, j]", "y[i, 0] = total"),  # a row that is stored otherwise
        ("i", "x[i, j]", "s[i] = total - most"),
    ],
)
def test_other_loops_have_no_row_in_each_lane(bounds: str, term: str, end: str) -> None:
    assert "columns" not in vectorized(SUMS.format(bounds=bounds, term=term, end=end))


def test_a_single_sum_is_not_worth_the_code() -> None:
    single = tl.parse("""
n, m = tl.dims("n m")

@tl.kernel
def f(x: tl.f32[n, m], s: tl.out[tl.f32[n]]):
    for i in range(n):
        total = tl.f32(0)
        for j in tl.reduce(m):
            total += x[i, j]
        s[i] = total
""")
    assert "columns" not in str(VectorizeLoops(target="x86-64-v4")(Normalize()(single)))


def test_without_masks_rows_stay_as_they_lie() -> None:
    source = SUMS.format(bounds="m", term="x[i, j]", end="s[i] = total - most")
    assert "columns" not in vectorized(source, "x86-64-v2")


@tl.kernel(target=V4)
def nearest(x: tl.f32[n, k], z: tl.f32[m, k], y: tl.out[tl.i64[n]]):
    for i in range(n):
        best = tl.f32("inf")
        at = tl.i64(-1)
        for j in range(m):
            s = tl.f32(0)
            for p in tl.reduce(k):
                s += (x[i, p] - z[j, p]) * (x[i, p] - z[j, p])
            if s < best:
                best = s
                at = j
        y[i] = at


@tl.kernel(target=V4)
def softmax(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
    for i in range(n):
        top = -tl.f32("inf")
        for j in tl.reduce(m):
            top = max(top, x[i, j])
        s = tl.f32(0)
        for j in tl.reduce(m):
            y[i, j] = tl.exp(x[i, j] - top)
            s += y[i, j]
        for j in range(m):
            y[i, j] = y[i, j] / s


@tl.kernel(target=V4)
def scaled(x: tl.f64[n, m], spare: tl.f64[n, m + 2]):
    for i in range(n):
        s = 0.0
        for j in tl.reduce(m):
            s += x[i, j] * spare[i, j + 2]
        for j in range(m):
            x[i, j] = x[i, j] + s
            spare[i, j + 2] = s


@cache
def here(kernel: tl.Kernel) -> tl.Kernel:
    """What is lowered for V4, as it runs on any machine."""
    return tl.compile(kernel.lowered, schedule=None)


ROWS = [0, 1, 31, 32, 33, 70]
COLUMNS = [0, 1, 15, 16, 17, 48, 49]


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("rows", ROWS)
def test_nearest_centroids_are_those_of_numpy(rows: int, columns: int) -> None:
    rng = np.random.default_rng(rows)
    x, z = rng.integers(0, 9, (rows, columns)).astype("f4"), rng.integers(0, 9, (5, columns)).astype("f4")
    found = np.empty(rows, "i8")
    here(nearest)(x, z, found)
    np.testing.assert_array_equal(found, ((x[:, None] - z) ** 2).sum(2).argmin(1))


def test_rows_read_a_few_times_are_turned_over_only_if_they_are_shorter() -> None:
    assert "if n >= 32 and k <= 64 and k <= m * 16:" in str(nearest.lowered)


@pytest.mark.parametrize("columns", COLUMNS[1:])
@pytest.mark.parametrize("rows", ROWS)
def test_rows_are_stored_back(rows: int, columns: int) -> None:
    x = np.random.default_rng(columns).standard_normal((rows, columns)).astype("f4")
    found = here(softmax)(x)
    powers = np.exp(x - x.max(1, initial=-np.inf, keepdims=True))
    np.testing.assert_allclose(found, powers / powers.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("rows", ROWS)
def test_rows_that_are_read_and_written_run_once(rows: int, columns: int) -> None:
    rng = np.random.default_rng(rows)
    x, spare = rng.integers(-9, 9, (rows, columns)) * 1.0, rng.integers(-9, 9, (rows, columns + 2)) * 1.0
    found, rest = x.copy(), spare.copy()
    here(scaled)(found, rest)
    s = (x * spare[:, 2:]).sum(1, keepdims=True)
    np.testing.assert_array_equal(found, x + s)
    np.testing.assert_array_equal(rest[:, :2], spare[:, :2])
    np.testing.assert_array_equal(rest[:, 2:], np.broadcast_to(s, (rows, columns)))


def test_the_lowered_function_is_what_runs() -> None:
    x = np.random.default_rng(1).standard_normal((37, 19)).astype("f4")
    meant = tl.compile(softmax.lowered).interpret(x)
    np.testing.assert_array_equal(here(softmax)(x).view("u4"), meant.view("u4"))


@tl.kernel(target=tl.Target("x86-64-v2"))
def decayed(x: tl.f32[n, m], y: tl.out[tl.f64[n, m]]):
    for i in range(n):
        s = tl.f32(0)
        for j in range(m):
            s = s * 0.5 + x[i, j]
            y[i, j] = tl.f64(s)


def test_blocks_of_wider_elements_have_masks_of_their_own() -> None:
    assert "tl.masked(tl.ramp(tile + 2, 1, 2), tl.ramp(tile + 2, 1, 2) < " in str(decayed.lowered)
    x = np.random.default_rng(2).integers(-9, 9, (37, 35)).astype("f4")
    np.testing.assert_array_equal(here(decayed)(x), tl.compile(decayed.lowered).interpret(x))
    np.testing.assert_array_equal(decayed(x), decayed.interpret(x))
