"""What combines columns goes row by row over strips of them."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite.rewrite import Normalize, ParallelizeLoops, VectorizeLoops

n, m = tl.dims("n m")

SUMS = """
n, m = tl.dims("n m")

@tl.kernel
def f(x: tl.f64[n, m], y: tl.out[tl.f64[m]]):
    for j in range(m):
        s = 0.0
        for i in {rows}:
            {stmt}
        y[j] = s / 2.0
"""


def vectorized(source: str) -> str:
    return str(VectorizeLoops()(Normalize()(tl.parse(source))))


def test_rows_of_a_strip_are_read_as_they_lie() -> None:
    found = vectorized(SUMS.format(rows="range(n)", stmt="s += x[i, j]"))
    wanted = """\
if m >= 65:
        for strip in range(0, m, 512):
            width = min(m - strip, 512)
            s_1 = tl.alloc(tl.f64[512], scope="local")
            for lane in range(width):
                s_1[lane] = 0.0
            for i in range(0, n // 4 * 4, 4):
                for lane in range(width):
                    s_1[lane] = s_1[lane] + x[i, strip + lane]
                    s_1[lane] = s_1[lane] + x[i + 1, strip + lane]
                    s_1[lane] = s_1[lane] + x[i + 2, strip + lane]
                    s_1[lane] = s_1[lane] + x[i + 3, strip + lane]
            for i in range(n // 4 * 4, n):
                for lane in range(width):
                    s_1[lane] = s_1[lane] + x[i, strip + lane]
            for lane in range(width):
                y[strip + lane] = s_1[lane] / 2.0
"""
    assert wanted in found


def test_workers_share_fewer_columns_than_two_strips_have() -> None:
    func = Normalize()(tl.parse(SUMS.format(rows="range(n)", stmt="s += x[i, j]")))
    wanted = """\
if m >= 65:
        wide = min(max((m + 127) // 128 * 64, 256), 512)
        for number in tl.parallel((m + wide - 1) // wide):
            strip = number * wide
            width = min(m - strip, wide)
"""
    assert wanted in str(VectorizeLoops()(ParallelizeLoops()(func)))


BY_WORKERS = tl.compile(tl.parse(SUMS.format(rows="range(n)", stmt="s += x[i, j]")), target=tl.Target.host(workers=3))


@pytest.mark.parametrize("columns", [65, 127, 128, 129, 700, 1025, 2049])
def test_strips_of_workers_cover_all_columns(columns: int) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (40, columns)).astype(float)
    np.testing.assert_array_equal(BY_WORKERS(x), x.sum(0) / 2)


@pytest.mark.parametrize(
    ("rows", "stmt"),
    [
        ("range(9)", "s += x[i, j]"),  # too few rows
        ("range(j)", "s += x[i, j]"),  # columns of their own lengths
        ("range(n)", "s += x[j, i]"),  # along rows
        ("range(n)", "s += x[tl.i64(x[i, 0]), j]"),  # rows from anywhere
        ("range(n)", "s += x[i, j] if s < 9.0 else tl.f64(i // (i - 7))"),  # it counts what comes first
    ],
)
def test_other_loops_are_not_cut(rows: str, stmt: str) -> None:
    assert "strip" not in vectorized(SUMS.format(rows=rows, stmt=stmt))


@tl.kernel
def moments(x: tl.f32[n, m], mean: tl.out[tl.f32[m]], most: tl.out[tl.i32[m]], scale: tl.f32):
    for j in range(m):
        s = tl.f32(j)
        top = tl.i32(-9)
        for i in range(n):
            v = x[i, j] * scale
            s += v
            top = max(top, tl.i32(v))
        half = s / 2
        mean[j] = half * half
        most[j] = top


@pytest.mark.parametrize("size", [(0, 70), (1, 65), (5, 1023), (33, 1024), (34, 2049), (40, 64)])
def test_each_column_is_combined_in_order(size: tuple[int, int]) -> None:
    x = np.random.default_rng(size[0]).normal(size=size).astype(np.float32)
    assert "strip" in str(moments.lowered)
    for ours, meant in zip(moments(x, 3.0), moments.interpret(x, 3.0), strict=True):
        assert ours.tobytes() == meant.tobytes()
