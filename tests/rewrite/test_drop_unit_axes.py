"""Parameters whose last axis has one element: loops along the one before go from neighbour to neighbour."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.ir import structural_equal


@tl.kernel
def column(a: tl.f32[30, 70], b: tl.f32[70, 1], y: tl.out[tl.f32[30, 1]]):
    for i in range(30):
        for j in range(1):
            total = tl.f32(0)
            for p in tl.reduce(70):
                total += a[i, p] * b[p, j]
            y[i, j] = total


def test_last_axes_of_one_element_go() -> None:
    @tl.kernel
    def expected(a: tl.f32[30, 70], b: tl.f32[70, 1], y: tl.out[tl.f32[30, 1]]):
        b_ = tl.view(b, tl.f32[70])
        y_ = tl.view(y, tl.f32[30])
        for i in range(30):
            for _ in range(1):
                total = tl.f32(0)
                for p in tl.reduce(70):
                    total += a[i, p] * b_[p]
                y_[i] = total

    assert structural_equal(tl.passes.DropUnitAxes()(column.ir), expected.ir.replaced(name="column"))


def test_the_sum_goes_by_vectors() -> None:
    kernel = tl.compile(column)
    assert "tl.ramp(p, 1, 64)" in str(kernel.lowered)
    numbers = np.random.default_rng(0)
    a, b = numbers.normal(size=(30, 70)).astype("f"), numbers.normal(size=(70, 1)).astype("f")
    np.testing.assert_array_equal(kernel(a, b), tl.compile(kernel.lowered, schedule=None).interpret(a, b))
    np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-4, atol=1e-5)


def test_what_is_used_as_a_whole_stays() -> None:
    @tl.kernel
    def seen_otherwise(x: tl.f32[8, 1], y: tl.out[tl.f32[8]]):
        flat = tl.view(x, tl.f32[8])
        for i in range(8):
            y[i] = x[i, 0] + flat[7 - i]

    assert tl.passes.DropUnitAxes()(seen_otherwise.ir) is seen_otherwise.ir
