"""Lanes load from places that they round floats to, in rows of their own too, as pixels of an image that is turned."""

from __future__ import annotations

import numpy as np
import pytest
from fuzz.guard import guarded

import tirlite as tl

h, w, n, m = tl.dims("h w n m")
rows = tl.dim("rows", min=0)
TARGET = tl.Target("x86-64-v4")


def turned(dtype: object, high: object = h) -> tl.Kernel:
    @tl.kernel(target=TARGET)
    def turn(x: dtype[high, w], y: dtype[n, m], c: tl.f32, s: tl.f32):
        for i in range(n):
            for j in range(m):
                u = tl.i32(tl.floor(c * tl.f32(i) - s * tl.f32(j) + 0.5))
                v = tl.i64(s * tl.f32(i) + c * tl.f32(j))
                if 0 <= u < high and 0 <= v < w:
                    y[i, j] = x[u, v]
                else:
                    y[i, j] = 7

    return turn


@pytest.mark.parametrize(("dtype", "kind"), [(tl.u8, "u1"), (tl.i16, "i2"), (tl.f16, "f2"), (tl.f32, "f4")])
def test_pixels_of_an_image_that_is_turned_are_those_in_order(dtype: object, kind: str) -> None:
    kernel, host = turned(dtype), tl.compile(turned(dtype).ir)
    # LLVM goes by branches where it has instructions that load from wherever lanes say.
    assert ("x_flat" in str(kernel.lowered)) == (kind != "f4")
    rng = np.random.default_rng(0)
    for size in ((1, 1, 1, 1), (3, 5, 2, 15), (9, 4, 3, 16), (20, 30, 5, 17), (31, 7, 4, 40), (2, 90, 3, 79)):
        x = (rng.random(size[:2]) * 100).astype(kind)
        for angle in (0.0, 0.3, 2.0):
            given = [x, np.zeros(size[2:], kind)]
            ends = np.float32(np.cos(angle)), np.float32(np.sin(angle))
            found, wanted, again = ([guarded(each, at_end=True) for each in given] for _ in range(3))
            host(*found, *ends)
            kernel.interpret(*wanted, *ends)
            tl.compile(host.lowered).interpret(*again, *ends)
            np.testing.assert_array_equal(found[1], wanted[1])
            np.testing.assert_array_equal(again[1], wanted[1])


def test_an_image_that_may_be_empty_has_no_first_element() -> None:
    assert "x_flat" not in str(turned(tl.u8, rows).lowered)
