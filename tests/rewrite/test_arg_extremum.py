"""tl.argmax and tl.argmin: NumPy's answer in any grouping."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

import tirlite as tl

n, m = tl.dims("n m")


@tl.kernel
def both(x: tl.f32[n], places: tl.out[tl.i64[2]], values: tl.out[tl.f32[2]]):
    high = tl.f32(-inf)
    high_at = tl.i64(0)
    for i in tl.reduce(n):
        high, high_at = tl.argmax((high, high_at), (x[i], i))
    low = tl.f32(inf)
    low_at = tl.i64(0)
    for i in tl.reduce(n):
        low, low_at = tl.argmin((low, low_at), (x[i], i))
    places[0] = high_at
    places[1] = low_at
    values[0] = high
    values[1] = low


@tl.kernel
def rows(x: tl.i16[n, m], y: tl.out[tl.i32[n]]):
    for i in range(n):
        top = x[i, 0] + tl.i16(0)
        at = tl.i32(0)
        for j in tl.reduce(1, m):
            top, at = tl.argmax((top, at), (x[i, j], tl.i32(j)))
        y[i] = at


@tl.kernel
def rows_of_floats(x: tl.f32[n, m], y: tl.out[tl.i64[n, 2]]):
    for i in range(n):
        top = tl.f32(-inf)
        low = tl.f32(inf)
        at = tl.i64(0)
        low_at = tl.i64(0)
        for j in tl.reduce(m):
            top, at = tl.argmax((top, at), (x[i, j], j))
        for j in tl.reduce(m):
            twice = 2 * x[i, j]
            low, low_at = tl.argmin((low, low_at), (twice, j))
        y[i, 0] = at
        y[i, 1] = low_at


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 31, 32, 33, 64, 100])
def test_ties_nan_and_infinities(size: int) -> None:
    rng = np.random.default_rng(size)
    plain = rng.integers(-2, 3, size).astype(np.float32)
    one_nan, nans = plain.copy(), plain.copy()
    one_nan[rng.integers(size)] = nan
    nans[rng.integers(size, size=3)] = nan
    for x in (plain, one_nan, nans, np.full(size, -inf, np.float32), np.full(size, inf, np.float32)):
        for run in (both, both.interpret, tl.compile(both.lowered).interpret):
            places, values = run(x)
            assert tuple(places) == (np.argmax(x), np.argmin(x))
            np.testing.assert_array_equal(values, [x.max(), x.min()])


def test_integers_along_rows() -> None:
    for size in (1, 5, 40, 130):
        x = np.random.default_rng(size).integers(-5, 5, (3, size)).astype(np.int16)
        np.testing.assert_array_equal(rows(x), x.argmax(1))


def test_such_loops_go_by_vectors() -> None:
    assert "tl.ramp" in str(rows.lowered)
    assert str(both.lowered).count("partial") > 20


@pytest.mark.parametrize(
    ("code", "update"),
    [
        ("reduction-carried", "top, at = tl.argmax((top, at), (x[i] + tl.f32(at), i))"),
        ("reduction-mixture", "top, at = tl.argmax((top, at), (x[i], i))\n        at += 1"),
        ("reduction-carried", "top, at = tl.argmax((x[i], i), (top, at))"),
    ],
)
def test_what_is_no_update_of_a_pair_is_refused(code: str, update: str) -> None:
    source = f"""
n = tl.dim("n")

@tl.kernel
def f(x: tl.f32[n], y: tl.f32[1]):
    top = tl.f32(0)
    at = tl.i64(0)
    for i in tl.reduce(n):
        {update}
    y[0] = top
"""
    with pytest.raises(tl.KernelError) as caught:
        _ = tl.compile(tl.parse(source)).lowered
    assert caught.value.code == code


@pytest.mark.parametrize("size", [1, 31, 32, 33, 64, 100])
def test_rows_find_the_value_first_and_then_where_it_stands(size: int) -> None:
    assert str(rows_of_floats.lowered).count("while") == 4
    x = np.random.default_rng(size).integers(-2, 3, (6, size)).astype(np.float32)
    x[1, -1] = x[2, size // 2] = nan
    x[3], x[4], x[5] = -inf, inf, nan
    for run in (rows_of_floats, rows_of_floats.interpret, tl.compile(rows_of_floats.lowered).interpret):
        np.testing.assert_array_equal(run(x), np.stack([x.argmax(1), x.argmin(1)], 1))


@tl.kernel
def matrix(x: tl.f32[n, m], y: tl.out[tl.i64[1]]):
    top, at = tl.f32(-inf), tl.i64(0)
    for i in tl.reduce(n):
        for j in tl.reduce(m):
            if x[i, j] != 3:
                top, at = tl.argmax((top, at), (x[i, j], i * m + j))
    y[0] = at


BY_WORKERS = [tl.compile(matrix, target=tl.Target.host(workers=workers)) for workers in (1, 2)]


@pytest.mark.parametrize("shape", [(1, 1), (3, 50), (50, 3), (300, 200)])
def test_loops_in_a_row_find_one_pair(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    plain = rng.integers(-40, 3, shape).astype(np.float32)
    one_nan = plain.copy()
    one_nan[shape[0] // 2, shape[1] // 2] = nan
    for x in (plain, one_nan):
        for kernel in BY_WORKERS:
            assert kernel(x)[0] == np.argmax(x)
        if x.size < 1000:
            assert matrix.interpret(x)[0] == tl.compile(matrix.lowered).interpret(x)[0] == np.argmax(x)


def test_two_kinds_of_pairs_are_named() -> None:
    @tl.kernel
    def ends(x: tl.f32[n], y: tl.f32[1]):
        top, at = tl.f32(0), tl.i64(0)
        for i in tl.reduce(n):
            top, at = tl.argmax((top, at), (x[i], i))
            top, at = tl.argmin((top, at), (x[i], i))
        y[0] = top

    with pytest.raises(tl.KernelError, match="`top` is combined over `i` by `tl.argmax`, and `tl.argmin` here"):
        _ = ends.lowered


@tl.kernel
def columns(x: tl.f32[n, m], y: tl.out[tl.i32[2, m]]):
    for j in range(m):
        top, low = tl.f32(-inf), tl.f32(inf)
        at, low_at = tl.i32(0), tl.i32(0)
        for i in tl.reduce(n):
            top, at = tl.argmax((top, at), (x[i, j], tl.i32(i)))
            low, low_at = tl.argmin((low, low_at), (x[i, j], tl.i32(i)))
        y[0, j] = at
        y[1, j] = low_at


@tl.kernel
def kept(x: tl.f32[n, m], y: tl.out[tl.i32[n]]):
    top, at = tl.f32(-inf), tl.i32(0)
    for i in range(n):
        for j in tl.reduce(m):
            top, at = tl.argmax((top, at), (x[i, j], tl.i32(j)))
        y[i] = at


@pytest.mark.parametrize("height", [1, 2, 9])
def test_columns_in_order_keep_the_first_of_equal_values(height: int) -> None:
    _, several = str(columns.lowered).split("    else:\n", 1)  # than one column, which is searched as a row
    assert "==" not in several
    x = np.random.default_rng(height).integers(-2, 3, (height, 45)).astype(np.float32)
    x[:, 3], x[:, 40] = -inf, inf
    x[-1, 5] = x[0, 6] = x[height // 2 :, 7] = nan
    for run in (columns, columns.interpret, tl.compile(columns.lowered).interpret):
        np.testing.assert_array_equal(run(x), np.stack([x.argmax(0), x.argmin(0)]))


def test_a_place_that_rows_hand_on_may_be_a_higher_one() -> None:
    x = np.float32([[0, 1, 3], [3, 0, 0], [0, 3, 3]])
    np.testing.assert_array_equal(kept(x), [2, 0, 0])
    np.testing.assert_array_equal(kept.interpret(x), [2, 0, 0])
