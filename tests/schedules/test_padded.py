"""Windows over padded images: what is read under a condition is packed with what stands for it elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from effort import effort
from small_tiles import SMALL

import tirlite as tl
from tirlite.codegen import Effort
from tirlite.ir import FloorDiv, FloorMod, Var, const, i64
from tirlite.schedules import PackPadded
from tirlite.schedules.auto.tiling import Tiling
from tirlite.schedules.pack_padded import one_row

c, h, w, o = tl.dims("c h w o")
any_w = tl.dim("w", min=0)


@pytest.fixture(autouse=True)
def _small_tiles() -> Iterator[None]:
    small = replace(SMALL, row_bytes=32, vector_bytes=16)
    with patch.object(Tiling, "of", lambda target: small), effort(Effort.NONE):
        yield


@tl.kernel
def line(x: tl.f32[c, 9], f: tl.f32[o, c, 3], y: tl.out[tl.f32[o, 9]]):
    for q in range(o):
        for j in range(9):
            total = tl.f32(0)
            for p in tl.reduce(c):
                for v in tl.reduce(3):
                    total += f[q, p, v] * (x[p, j + v - 1] if j + v >= 1 and j + v < 10 else tl.f32(0))
            y[q, j] = total


def packed() -> tl.Schedule:
    s = tl.schedule(line)
    s.split("j", 4)
    s.reorder("j.outer", "q", "j.inner")
    s.pack_padded("x", at="j.outer", axes=["p", "v", "j.inner"], whole=4)
    return s


def test_which_lanes_lie_inside_is_found_once_for_many_channels() -> None:
    text = str(packed().func)
    assert (
        "    for j_outer in range(0, 9, 4):\n"
        "        x_packed = tl.alloc(tl.f32[c, 3, 4])\n"
        "        before = tl.ramp(tl.i32(0), tl.i32(1), 4) < tl.broadcast(tl.i32(min(9 - j_outer, 4)), 4)\n"
        "        for x_p_outer in range(0, c, 8):\n"
        "            for x_v in range(3):\n"
        "                on = before & tl.select(tl.ramp(j_outer + x_v, 1, 4) >= tl.broadcast(1, 4), "
        "tl.ramp(j_outer + x_v, 1, 4) < tl.broadcast(10, 4), tl.broadcast(False, 4))\n"
        "                for x_p in range(x_p_outer, min(x_p_outer + 8, c)):\n"
        "                    x_packed[x_p, x_v, tl.ramp(0, 1, 4)] = "
        "x[x_p, tl.masked(tl.ramp(j_outer + x_v - 1, 1, 4), on)]\n"
    ) in text
    assert "total[()] = total[()] + f[q, p, v] * x_packed[p, v, j_inner - j_outer]" in text


def test_it_prints_as_the_step_that_it_is() -> None:
    assert str(packed()).endswith("s.pack_padded('x', at='j.outer', axes=['p', 'v', 'j.inner'], whole=4)")


def test_what_does_not_fit_is_told() -> None:
    @tl.kernel
    def twice(x: tl.f32[9], f: tl.f32[o, 3], y: tl.out[tl.f32[o, 9]]):
        for q in range(o):
            for j in range(9):
                total = tl.f32(0)
                for v in tl.reduce(3):
                    total += f[q, v] * (x[j + v] if j + v < 9 else x[0])
                y[q, j] = total

    s = tl.schedule(twice)
    with pytest.raises(tl.KernelError, match="no constant"):
        s.pack_padded("x", at="q", axes=["v", "j"], whole=4)
    s = tl.schedule(line)
    with pytest.raises(tl.KernelError, match="not read by a conditional expression"):
        s.pack_padded("f", at="q", axes=["p", "v"], whole=4)


@tl.kernel
def image(x: tl.f32[c, h, w], f: tl.f32[o, c, 3, 3], y: tl.out[tl.f32[o, h * w]]):
    """Rows one behind the other: neighbours are neighbours in memory over the ends of rows too."""
    for q in range(o):
        for place in range(h * w):
            total = tl.f32(0)
            for p in tl.reduce(c):
                for u in tl.reduce(3):
                    for v in tl.reduce(3):
                        i = place // w + u - 1
                        j = place % w + v - 1
                        total += f[q, p, u, v] * (x[p, i, j] if i >= 0 and i < h and j >= 0 and j < w else tl.f32(0))
            y[q, place] = total


@tl.kernel
def steps(x: tl.f16[c, h, w], f: tl.f32[o, c, 3, 2], y: tl.out[tl.f32[o, h * 5]]):
    """By two along one axis, every other element along the other, and with another number outside."""
    for q in range(o):
        for place in range(h * 5):
            total = tl.f32(0)
            for p in tl.reduce(c):
                for u in tl.reduce(3):
                    for v in tl.reduce(2):
                        i = place // 5 * 2 + u - 1
                        j = place % 5 + v * 2 - 2
                        total += f[q, p, u, v] * (
                            tl.f32(x[p, i, j]) if i >= 0 and i < h and j >= 0 and j < w else tl.f32(0.5)
                        )
            y[q, place] = total


@tl.kernel
def long_steps(x: tl.f32[c, h, 24], f: tl.f32[o, c, 3, 3], y: tl.out[tl.f32[o, h * 12]]):
    """By two along rows that are longer than vectors: most of these lie in one row."""
    for q in range(o):
        for place in range(h * 12):
            total = tl.f32(0)
            for p in tl.reduce(c):
                for u in tl.reduce(3):
                    for v in tl.reduce(3):
                        i = place // 12 + u - 1
                        j = place % 12 * 2 + v - 1
                        total += f[q, p, u, v] * (x[p, i, j] if i >= 0 and i < h and j >= 0 and j < 24 else tl.f32(0.5))
            y[q, place] = total


def test_lanes_of_one_row_that_lie_inside_are_loaded_as_they_lie() -> None:
    s = tl.schedule(long_steps)
    s.inline_lets("v")
    s.split("place", 8)
    s.reorder("place.outer", "q", "place.inner")
    s.pack_padded("x", at="place.outer", axes=["p", "u", "v", "place.inner"], whole=8)
    text = str(s.func)
    assert "        column = place_outer % 12\n" in text
    assert (
        "                    if column <= 4 and place_outer + 8 <= min(place_outer + 8, h * 12) "
        "and place_outer // 12 + x_u - 1 >= 0 and place_outer // 12 + x_u - 1 < h and 2 * column + x_v >= 1:\n"
        "                        for x_p in range(x_p_outer, min(x_p_outer + 8, c)):\n"
        "                            x_packed[x_p, x_u, x_v, tl.ramp(0, 1, 8)] = "
        "x[x_p, place_outer // 12 + x_u - 1, tl.ramp(column * 2 + x_v - 1, 2, 8)]\n"
        "                    else:\n"
    ) in text


@pytest.mark.parametrize(("divisor", "is_row"), [(12, True), (24, True), (18, False), (-12, False), (0, False)])
def test_a_row_is_one_of_quotients_by_its_length(divisor: int, is_row: bool) -> None:
    place, start = Var("place", i64), Var("start", i64)
    row, column = FloorDiv(place, const(divisor, i64)), FloorMod(place, const(12, i64))
    assert (one_row(place, start, const(99, i64), 8, row < const(5, i64), (row, column)) is not None) is is_row


@tl.kernel
def spread(x: tl.i8[c, w], f: tl.i32[c, o, 3], y: tl.out[tl.i32[o, w * 2 + 1]]):
    """The transpose of a convolution by two: some elements of x are under no tap of a window."""
    for q in range(o):
        for place in range(w * 2 + 1):
            total = tl.i32(0)
            for p in tl.reduce(c):
                for v in tl.reduce(3):
                    at = place - v
                    total += f[p, q, v] * (tl.i32(x[p, at // 2]) if at % 2 == 0 and at // 2 >= 0 and at // 2 < w else 0)
            y[q, place] = total


@tl.kernel
def shifted(x: tl.f32[c, 9], f: tl.f32[o, c, 3], b: tl.f32[o], y: tl.out[tl.f32[o, 9]]):
    """What is added to each sum of a row is loaded under the mask of the last columns."""
    for q in range(o):
        for j in range(9):
            total = tl.f32(0)
            for p in tl.reduce(c):
                for v in tl.reduce(3):
                    total += f[q, p, v] * (x[p, j + v - 1] if j + v >= 1 and j + v < 10 else tl.f32(0))
            y[q, j] = total + b[q]


@tl.kernel
def under_zero(x: tl.f64[c, h, w], f: tl.f64[o, c, 2], y: tl.out[tl.f64[o, h, w]]):
    """With an axis of rows of its own, and -0.0 outside, which leaves a sum as it is."""
    for q in range(o):
        for i in range(h):
            for j in range(w):
                total = tl.f64(-0.0)
                for p in tl.reduce(c):
                    for v in tl.reduce(2):
                        total += f[q, p, v] * (x[p, i, j + v] if j + v < w else tl.f64(-0.0))
                y[q, i, j] = total


@tl.kernel
def maybe_empty(x: tl.f32[c, 5, any_w], f: tl.f32[o, c, 3], y: tl.out[tl.f32[o, 5 * any_w]]):
    """Places count over rows that may have none, where no place is divided by their length."""
    for q in range(o):
        for place in range(5 * any_w):
            total = tl.f32(0)
            for p in tl.reduce(c):
                for v in tl.reduce(3):
                    row, at = place // any_w, place % any_w + v - 1
                    total += f[q, p, v] * (x[p, row, at] if row < 5 and at >= 0 and at < any_w else tl.f32(0))
            y[q, place] = total


@pytest.mark.parametrize(
    "kernel",
    [line, image, steps, long_steps, spread, shifted, under_zero, maybe_empty],
    ids=lambda kernel: kernel.name,
)
def test_it_is_packed_and_means_what_is_written(kernel: tl.Kernel) -> None:
    tiled = tl.compile(kernel.ir)
    assert any(isinstance(step, PackPadded) for step in tiled.schedule.steps)
    assert "tl.masked(" in str(tiled.lowered)
    for sizes in ({"c": 3, "h": 5, "w": 6, "o": 7}, {"c": 2, "h": 1, "w": 9, "o": 6}, {"c": 3, "h": 4, "w": 0, "o": 5}):
        numbers = np.random.default_rng(7)
        shapes = [tuple(extent_at(extent, sizes) for extent in param.shape) for param in kernel.ir.params[:-1]]
        dtypes = [param.dtype.numpy for param in kernel.ir.params[:-1]]
        given = [(9 * numbers.normal(size=shape)).astype(each) for shape, each in zip(shapes, dtypes, strict=True)]
        np.testing.assert_array_equal(tiled(*given), kernel.interpret(*given))


def extent_at(extent: tl.ir.Expr, sizes: dict[str, int]) -> int:
    return sizes[extent.name] if isinstance(extent, tl.ir.Var) else extent.value  # type: ignore[attr-defined]
