"""TightenLoops counts the iterations of loops over windows from where these lie."""

from __future__ import annotations

import numpy as np
import pytest
from every import every
from parsed import parsed

import tirlite as tl
from tirlite.interp import interpret
from tirlite.ir import For, statements_of
from tirlite.rewrite import Normalize, TightenLoops

HEADER = """
n = tl.dim("n")
m = tl.dim("m")

@tl.kernel
def f(x: tl.f32[n, m], y: tl.f32[n, m], w: tl.i64[n], r: tl.i64):
"""


def kernel(body: str) -> tl.PrimFunc:
    return Normalize()(parsed(HEADER, body))


def ends_of(func: tl.PrimFunc) -> list[str]:
    """Where the loops start and stop that are inside of two others."""
    loops = [*statements_of(func.body, For)][2:]
    return [f"{tl.ir.text(loop.start)}:{tl.ir.text(loop.stop)}" for loop in loops]


n, m = tl.dims("n m")

BOX = """
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            y[i, j] = 0
            for a in range(i - 1, i + 2):
                for b in range(j - 1, j + 2):
                    y[i, j] += x[a, b]
"""
CLIPPED = """
    for i in range(n):
        for j in range(m):
            y[i, j] = 0
            for a in range(max(0, i - 2), min(n, i + 3)):
                for b in range(max(j - 1, 0), min(m, j + 1)):
                    y[i, j] = max(y[i, j], x[a, b] * 2)
"""
BLOCKS = """
    for i in range(n // 2):
        for j in range(m // 3):
            for a in range(2 * i, 2 * i + 2):
                for b in range(j * 3, (j + 1) * 3):
                    y[i, j] += x[a, b]
"""
NAMED = """
    for i in range(n):
        first = max(0, i - 1)
        last = min(n, i + 2)
        for j in range(m):
            for a in range(first, last):
                y[i, j] += x[a, j]
"""
BY_STEPS = """
    for i in range(4, n - 4):
        for j in range(m):
            for a in range(i + 3, i - 4, -1):
                y[i, j] = y[i, j] * 2 + x[a, j]
            for a in range(i - 4, i + 5, 2):
                y[i, j] = y[i, j] * 2 + x[a, j]
"""
AS_LONG_AS_A_ROW = """
    for i in range(n):
        for j in range(m):
            for b in range(j, j + m):
                y[i, j] += x[i, b - j]
"""


@pytest.mark.parametrize(
    ("body", "ends"),
    [
        (BOX, ["-1:2", "-1:2"]),
        (CLIPPED, ["-2:3", "-1:1"]),
        (AS_LONG_AS_A_ROW, ["0:m"]),
        (BLOCKS, ["0:2", "0:3"]),
        (NAMED, ["-1:2"]),
        (BY_STEPS, ["0:7", "0:5"]),
    ],
)
def test_windows_count_from_where_they_lie(body: str, ends: list[str]) -> None:
    before = kernel(body)
    after = TightenLoops()(before)
    assert ends_of(after) == ends
    random = np.random.default_rng(1)
    for shape in ((1, 1), (2, 5), (7, 3), (9, 12)):
        x, y = random.standard_normal((2, *shape), np.float32)
        results = []
        for func in (before, after):
            given = [x, y.copy(), np.zeros(shape[0], np.int64), 1]
            interpret(func, {**dict(zip(func.params, given, strict=True)), **dict(zip(func.dims, shape, strict=True))})
            results.append(given[1])
        np.testing.assert_array_equal(*results)


@every(
    "body",
    [
        "for a in range(i - 1, i + 2):\n y[i, j] += x[a, j]",  # not in bounds everywhere: its counter is told then
        "for a in range(i + 1, n):\n y[i, j] += x[a, j]",  # none is as long as the next one
        "for a in range(max(0, i - w[0]), min(n, i + w[0] + 1)):\n y[i, j] += x[a, j]",  # i + w[0] may wrap around
        "for a in range(max(w[i], i - 1), min(n, i + 2)):\n y[i, j] += x[a, j]",  # decided by memory
        "for a in range(16 * i, 16 * i + 16):\n y[i, j] += x[0, j] * a",  # a tile, as an author writes it
        "for a in range(i, min(n, i + 40)):\n y[i, j] += x[a, j]",  # long
        "for a in range(max(0, i - 1), min(n, i + 2)):\n y[i, j] += x[a, j] * (a // r)",  # divides by anything
    ],
)
def test_other_loops_stay(body: str) -> None:
    inside = body.replace("\n", "\n                ")
    func = kernel(f"\n    for i in range(n):\n        for j in range(m):\n            {inside}\n")
    assert TightenLoops()(func) is func


WIDE = """
    for i in range(n):
        for j in range(m):
            for a in range(max(0, i - r), min(n, i + r + 1)):
                y[i, j] += x[a, j]
            for b in range(max(j - r - 1, 0), min(m, j + 2)):
                y[i, j] = max(y[i, j], x[i, b])
"""
GUARDED = """
    for i in range(n):
        for j in range(m):
            for a in range(i - r, i + r + 1):
                if a >= 0 and a < n:
                    y[i, j] += x[a, j]
"""
BEHIND_A_NAME = """
    for i in range(n):
        reach = 2 * r
        for j in range(m):
            for a in range(max(i - reach, 0), min(n, i)):
                y[i, j] += x[a, j]
"""


@pytest.mark.parametrize("body", [WIDE, GUARDED, BEHIND_A_NAME])
@every("radius", [-(2**63), -1, 0, 2, 16, 17, 2**62 + 3, 2**63 - 1])
def test_windows_as_wide_as_a_number_says(body: str, radius: int) -> None:
    radius = min(radius, 17) if body is GUARDED else radius  # it goes on for long otherwise
    before = kernel(body)
    after = TightenLoops()(before)
    assert len([*statements_of(after.body, For)]) >= 2 * len([*statements_of(before.body, For)])
    compiled = tl.compile(before)
    for shape in ((1, 1), (9, 12), (3, 67)):
        x, y = np.random.default_rng(1).integers(-4, 5, (2, *shape)).astype(np.float32)
        results = []
        for func in (before, after):
            given = [x, y.copy(), np.zeros(shape[0], np.int64), radius]
            interpret(func, {**dict(zip(func.params, given, strict=True)), **dict(zip(func.dims, shape, strict=True))})
            results.append(given[1])
        found = y.copy()
        compiled(x, found, np.zeros(shape[0], np.int64), radius)
        np.testing.assert_array_equal(results[1], results[0])
        np.testing.assert_array_equal(found, results[0])


@tl.kernel
def box(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
    for i in range(n):
        for j in range(m):
            total = tl.f32(0)
            for a in range(max(0, i - 1), min(n, i + 2)):
                for b in range(max(0, j - 1), min(m, j + 2)):
                    total += x[a, b]
            y[i, j] = total


@pytest.mark.parametrize("shape", [(1, 1), (3, 70), (40, 2), (66, 130)])
def test_windows_that_edges_cut_off_sum_up_what_lies_inside(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).integers(0, 9, shape).astype(np.float32)
    rows = np.pad(x, 1)
    wanted = sum(rows[a : a + shape[0], b : b + shape[1]] for a in range(3) for b in range(3))
    for run in (box, box.interpret, tl.compile(box.lowered)):
        np.testing.assert_array_equal(run(x), wanted)
    assert "tl.ramp" in str(box.lowered)
