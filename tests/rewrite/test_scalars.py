"""Small temporaries of iterations whose lanes lie apart become scalars, and their short loops are written out."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl

n, m = tl.dims("n m")


@tl.kernel
def mixed(x: tl.u8[n, 3], y: tl.out[tl.u8[n, 3]]):
    for i in range(n):
        t = tl.alloc(tl.i32[3])
        for q in range(3):
            t[q] = tl.i32(x[i, q])
        for q in range(2):
            for r in range(2 - q):
                low = min(t[r], t[r + 1])
                t[r + 1] = max(t[r], t[r + 1])
                t[r] = low
        for q in range(3):
            y[i, q] = tl.u8(t[q])


@tl.kernel
def looked_up(x: tl.u8[n, 3], at: tl.u8[n], y: tl.out[tl.u8[n]]):
    for i in range(n):
        t = tl.alloc(tl.u8[3])
        for q in range(3):
            t[q] = x[i, q]
        y[i] = t[at[i] % 3]


@tl.kernel
def distances(x: tl.f32[n, 3], y: tl.f32[n, 3], z: tl.out[tl.f32[n]]):
    for i in range(n):
        s = tl.f32(0)
        for q in tl.reduce(3):
            s += (x[i, q] - y[i, q]) * (x[i, q] - y[i, q])
        z[i] = tl.sqrt(s)


@tl.kernel
def bands(a: tl.f32[n, 7], x: tl.f32[n + 6], y: tl.out[tl.f32[n]]):
    for i in range(n):
        s = tl.f32(0)
        for j in tl.reduce(7):
            s += a[i, j] * x[i + j]
        y[i] = s


def test_loops_over_a_few_neighbours_are_written_out() -> None:
    assert "for q" not in str(distances.lowered)
    for size in (0, 1, 7, 100):
        x, y = np.random.default_rng(size).normal(size=(2, size, 3)).astype(np.float32)
        assert distances(x, y).tobytes() == distances.interpret(x, y).tobytes()


def test_sums_of_too_few_for_partial_results_go_by_columns() -> None:
    assert "tl.interleave_low" in str(bands.lowered)
    for size in (1, 7, 8, 9, 100):
        draw = np.random.default_rng(size)
        a, x = draw.normal(size=(size, 7)).astype(np.float32), draw.normal(size=size + 6).astype(np.float32)
        assert bands(a, x).tobytes() == bands.interpret(a, x).tobytes()


def test_elements_stand_in_scalars() -> None:
    text = str(mixed.lowered)
    assert "for q" not in text
    assert "for r" not in text
    assert "tl.alloc(tl.i32[3])" not in text
    assert text.count('tl.alloc(tl.i32[()], scope="local")') == 3
    for size in (0, 1, 5, 100):
        x = np.random.default_rng(size).integers(0, 256, (size, 3), dtype=np.uint8)
        np.testing.assert_array_equal(mixed(x), np.sort(x, axis=1))


def test_arrays_that_memory_indexes_stay() -> None:
    assert "tl.u8[3]" in str(looked_up.lowered)
    x = np.arange(30, dtype=np.uint8).reshape(10, 3)
    at = np.arange(10, dtype=np.uint8)
    np.testing.assert_array_equal(looked_up(x, at), x[np.arange(10), at % 3])


@tl.kernel
def pulls(p: tl.f32[n, 3], y: tl.out[tl.f32[n, 3]]):
    for i in range(n):
        for c in range(3):
            y[i, c] = 0
        for j in tl.reduce(n):
            d = p[j, 0] - p[i, 0]
            e = p[j, 1] - p[i, 1]
            s = d * d + e * e
            y[i, 0] += d * s
            y[i, 1] += e * s
            y[i, 2] += s


@tl.kernel
def added(x: tl.f32[n], y: tl.f32[n, 2]):
    for i in range(n):
        for j in tl.reduce(n):
            y[i, 0] += x[j]
            y[i, 1] += x[j] * x[i]


@tl.kernel
def picked(x: tl.f32[n], at: tl.u8[n], y: tl.f32[n, 2]):
    for i in range(n):
        y[i, 1] = x[i]
        for j in tl.reduce(n):
            if at[j] < 2:
                y[i, at[j]] += x[j]


def test_a_few_elements_that_constants_tell_apart_stand_in_scalars_for_each_lane() -> None:
    for kernel, has_vectors in ((pulls, True), (added, True), (picked, False)):
        assert ("tl.ramp" in str(kernel.lowered)) is has_vectors
        for size in (1, 2, 15, 16, 17, 40):
            draw = np.random.default_rng(size)
            if kernel is pulls:
                p = draw.integers(-4, 4, (size, 3)).astype(np.float32)
                assert pulls(p).tobytes() == pulls.interpret(p).tobytes()
                continue
            x, y = (draw.integers(-9, 9, shape).astype(np.float32) for shape in (size, (size, 2)))
            given = (x,) if kernel is added else (x, draw.integers(0, 4, size, dtype=np.uint8))
            wanted = y.copy()
            kernel.interpret(*given, wanted)
            kernel(*given, y)
            assert y.tobytes() == wanted.tobytes()


@tl.kernel
def summed_through_a_view(x: tl.f32[n, m], y: tl.out[tl.f32[n, 1]]):
    column = tl.view(y, tl.f32[n])
    for i in range(n):
        for j in range(m):
            column[i] = column[i] + x[i, j] * x[0, j]


@pytest.mark.parametrize("rows", [1, 3, 40])
def test_an_element_of_a_view_is_kept_in_a_scalar_and_stored(rows: int) -> None:
    x = np.random.default_rng(rows).standard_normal((rows, 5), np.float32)
    np.testing.assert_array_equal(summed_through_a_view(x), summed_through_a_view.interpret(x))
