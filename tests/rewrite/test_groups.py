"""Lanes that access groups of a few elements, as complex numbers are, go through views without groups."""

from __future__ import annotations

from itertools import product as product_of

import numpy as np
import pytest

import tirlite as tl
from tirlite.rewrite import Normalize, VectorizeLoops

n, m, k = tl.dims("n m k")


@tl.kernel
def complex_product(x: tl.f32[n, k, 2], z: tl.f32[k, m, 2], y: tl.out[tl.f32[n, m, 2]]):
    for i in range(n):
        for j in range(m):
            u = tl.f32(0)
            v = tl.f32(0)
            for p in tl.reduce(k):
                u += x[i, p, 0] * z[p, j, 0] - x[i, p, 1] * z[p, j, 1]
                v += x[i, p, 0] * z[p, j, 1] + x[i, p, 1] * z[p, j, 0]
            y[i, j, 0] = u
            y[i, j, 1] = v


@tl.kernel
def filtered_colours(x: tl.f32[n, m + 4, 4], w: tl.f32[5], y: tl.out[tl.f32[n, m, 4]]):
    for i in range(n):
        for j in range(m):
            red = tl.f32(0)
            green = tl.f32(0)
            blue = tl.f32(0)
            for p in tl.reduce(5):
                red += w[p] * x[i, j + p, 0]
                green += w[p] * x[i, j + p, 1]
                blue += w[p] * x[i, j + p, 2]
            y[i, j, 0] = red
            y[i, j, 1] = green
            y[i, j, 2] = blue
            y[i, j, 3] = x[i, j, 3]


@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 16, 3), (4, 37, 9), (2, 70, 5)])
def test_products_of_complex_numbers(shape: tuple[int, int, int]) -> None:
    rows, columns, length = shape
    draw = np.random.default_rng(columns)
    x, z = draw.random((rows, length, 2), np.float32), draw.random((length, columns, 2), np.float32)
    lowered = tl.compile(complex_product.lowered, strategy="none")
    y = complex_product(x, z)
    np.testing.assert_array_equal(lowered.interpret(x, z), y)
    complex_x, complex_z = (each.view(np.complex64)[..., 0] for each in (x, z))
    np.testing.assert_allclose(y.view(np.complex64)[..., 0], complex_x @ complex_z, rtol=1e-5)


@pytest.mark.parametrize("width", [1, 16, 45])
def test_colours(width: int) -> None:
    x, w = (np.random.default_rng(width).random(shape, np.float32) for shape in ((5, width + 4, 4), (5,)))
    wanted = sum(w[p] * x[:, p : p + width] for p in range(5))
    found = filtered_colours(x, w)
    np.testing.assert_allclose(found[..., :3], wanted[..., :3], rtol=1e-5)
    np.testing.assert_array_equal(found[..., 3], x[:, :width, 3])
    np.testing.assert_array_equal(tl.compile(filtered_colours.lowered, strategy="none").interpret(x, w), found)


def test_whole_groups_are_stored_at_once() -> None:
    lowered = str(complex_product.lowered)
    assert "z_flat = tl.view(z, tl.f32[k, m * 2])" in lowered
    assert "tl.interleave_low" in lowered


@pytest.mark.parametrize(
    ("loads", "stores"),
    [
        ("z[p, j, 0] * z[p, j, 2]", "y[i, j, 0] = u[()]"),  # a part of a group alone is stored
        ("z[p, j, i]", "y[i, 0, 0] = u[()]"),  # no lane has an element of its own
        (
            "z[p, j, 0]",
            "y[i, j, 0] = u[()]\n            y[i, j, 2] = u[()]\n            y[i, j, 1] = u[()]",
        ),  # not in order
    ],
)
def test_other_groups_stay(loads: str, stores: str) -> None:
    source = f"""
n, m, k = tl.dims("n m k")

@tl.kernel
def f(z: tl.f32[k, m, 4], y: tl.f32[n, m, 3]):
    for i in range(3):
        for j in range(m):
            u = tl.alloc(tl.f32[()])
            u[()] = 0
            for p in range(k):
                u[()] += {loads}
            {stores}
"""
    assert "flat" not in str(VectorizeLoops()(Normalize()(tl.parse(source))))


@tl.kernel
def product(x: tl.f32[n, k], z: tl.f32[k, m], y: tl.out[tl.f32[n, m]]):
    for i in range(n):
        for j in range(m):
            total = tl.f32(0)
            for p in tl.reduce(k):
                total += x[i, p] * z[p, j]
            y[i, j] = total


@tl.kernel
def small_product(x: tl.i8[n, k], z: tl.i8[k, m], y: tl.out[tl.i32[n, m]]):
    for i in range(n):
        for j in range(m):
            y[i, j] = 0
            for p in tl.reduce(k):
                y[i, j] += tl.i32(x[i, p]) * tl.i32(z[p, j])


@pytest.mark.parametrize("shape", [(1, 1), (5, 70), (33, 16)])
def test_a_product_of_one_column_sums_along_rows(shape: tuple[int, int]) -> None:
    draw = np.random.default_rng(shape[1])
    x, z = draw.random(shape, np.float32), draw.random((shape[1], 1), np.float32)
    y = product(x, z)
    np.testing.assert_allclose(y, x @ z, rtol=1e-5)
    np.testing.assert_array_equal(tl.compile(product.lowered, strategy="none").interpret(x, z), y)
    small = (draw.integers(-128, 128, each.shape, dtype=np.int8) for each in (x, z))
    x, z = small
    np.testing.assert_array_equal(small_product(x, z), x.astype(np.int32) @ z)
    assert "m == 1" in str(product.lowered)


@tl.kernel
def shares(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
    for j in range(m):
        total = tl.f32(0)
        for i in tl.reduce(n):
            total += tl.abs(x[i, j])
        for i in range(n):
            y[i, j] = x[i, j] / total


@tl.kernel
def middle(x: tl.f32[n, k, m], y: tl.out[tl.f32[n, m]]):
    for i in range(n):
        for j in range(m):
            y[i, j] = 0
            for p in tl.reduce(k):
                y[i, j] += x[i, p, j]


@tl.kernel
def sums(x: tl.f32[n, m], y: tl.out[tl.f32[m]]):
    for j in range(m):
        total = tl.f32(0)
        for i in tl.reduce(n):
            total += x[i, j]
        y[j] = total


@tl.kernel
def outer(x: tl.f32[n], z: tl.f32[m], y: tl.out[tl.f32[n, m]]):
    for j in range(m):
        for i in range(n):
            y[i, j] = x[i] * z[j]


def test_what_goes_down_one_column_goes_along_it() -> None:
    draw = np.random.default_rng(0)
    for count, columns in product_of((3, 100), (1, 2, 5, 21)):
        x = draw.random((count, columns), np.float32)
        np.testing.assert_allclose(shares(x), x / x.sum(0), rtol=1e-5)
        np.testing.assert_array_equal(tl.compile(shares.lowered, strategy="none").interpret(x), shares(x))
        z = draw.random((2, count, columns), np.float32)
        np.testing.assert_allclose(middle(z), z.sum(1), rtol=1e-5)
        np.testing.assert_array_equal(tl.compile(middle.lowered, strategy="none").interpret(z), middle(z))
        np.testing.assert_allclose(sums(x), x.sum(0), rtol=1e-5)
        np.testing.assert_array_equal(tl.compile(sums.lowered, strategy="none").interpret(x), sums(x))
        np.testing.assert_array_equal(outer(x[:, 0], x[0]), np.outer(x[:, 0], x[0]))
    for kernel in shares, middle, sums, outer:
        assert "m == 1" in str(kernel.lowered)


def test_few_columns_that_divide_fill_a_part_of_a_register() -> None:
    found = str(tl.compile(shares, target=tl.Target("x86-64-v4", workers=1)).lowered)
    divided = [line for line in found.splitlines() if " / " in line]
    lanes = {lanes for lanes in (4, 8, 16, 32, 64) for line in divided if f", {lanes})" in line}
    assert lanes == {4, 16, 32, 64}


def test_bytes_that_become_colours_are_left_to_llvm() -> None:
    @tl.kernel
    def mosaic(x: tl.u8[2 * n, 2 * m], y: tl.out[tl.u8[n, m, 3]]):
        for i in range(n):
            for j in range(m):
                y[i, j, 0] = x[2 * i, 2 * j]
                y[i, j, 1] = tl.u8((tl.i32(x[2 * i, 2 * j + 1]) + tl.i32(x[2 * i + 1, 2 * j])) // 2)
                y[i, j, 2] = x[2 * i + 1, 2 * j + 1]

    assert "tl.ramp" not in str(mosaic.lowered)
    x = np.random.default_rng(0).integers(0, 256, (6, 90), np.uint8)
    green = (x[::2, 1::2].astype(np.int32) + x[1::2, ::2]) // 2
    np.testing.assert_array_equal(mosaic(x), np.stack([x[::2, ::2], green, x[1::2, 1::2]], 2))
