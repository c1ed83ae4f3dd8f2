"""Sums over complex numbers, pixels and other small groups go by vectors of groups, the last ones under a mask."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite.rewrite import CheckReductions, Normalize, SplitReductions

SUMS = """
n, m = tl.dims("n m")

@tl.kernel
def sums(x: tl.{dtype}[n, m, {apart}], y: tl.{dtype}[n]):
    for i in range(n):
        s = tl.{dtype}(0)
        for j in tl.reduce(m):
            s += {term}
        y[i] = s
"""
NORM = "x[i, j, 0] * x[i, j, 0] + x[i, j, 1] * x[i, j, 1]"
GRAY = "x[i, j, 0] + x[i, j, 1] * 2 - x[i, j, 2]"


def split(dtype: str, apart: int, term: str) -> tl.PrimFunc:
    func = Normalize()(tl.parse(SUMS.format(dtype=dtype, apart=apart, term=term)))
    return SplitReductions("x86-64-v4")(CheckReductions()(func))


def test_complex_numbers_are_loaded_from_a_flat_view() -> None:
    found = str(split("f32", 2, NORM))
    assert "x_flat = tl.view(x, tl.f32[n, m * 2])" in found
    assert "x_flat[i, tl.masked(tl.ramp(0, 2, 8), left_1)]" in found  # up to 8 fill a narrow vector
    few = """\
        elif m >= 1:
            for j in range(m):
                s[()] = s[()] + (x[i, j, 0] * x[i, j, 0] + x[i, j, 1] * x[i, j, 1])
"""
    assert few in found


@pytest.mark.parametrize(
    ("dtype", "apart", "term"),
    [
        ("i32", 2, NORM),
        ("f32", 3, "x[i, j, 2]"),
        ("f32", 4, f"{NORM} + x[i, j, 2] * x[i, j, 3]"),
        ("f32", 5, "x[i, j, 0]"),
        ("f32", 3, NORM),
    ],
)
def test_sums_of_integers_of_parts_and_of_large_groups_go_one_by_one(dtype: str, apart: int, term: str) -> None:
    assert "flat" not in str(split(dtype, apart, term))


@pytest.mark.parametrize("columns", [0, 1, 4, 5, 8, 9, 16, 17, 31, 64, 79])
@pytest.mark.parametrize(("dtype", "apart", "term"), [("f32", 2, NORM), ("f64", 2, NORM), ("f32", 3, GRAY)])
def test_code_does_what_is_written(dtype: str, apart: int, term: str, columns: int) -> None:
    func = split(dtype, apart, term)
    kind = np.dtype(str(dtype).replace("f", "float"))
    x = np.random.default_rng(columns).integers(-9, 9, (3, columns, apart)).astype(kind)
    found = np.zeros((2, 3), kind)
    tl.compile(func, schedule=None)(x, found[0])
    tl.compile(func).interpret(x, found[1])
    np.testing.assert_array_equal(*found)
    parts = np.moveaxis(x, 2, 0)
    wanted = (parts * parts).sum((0, 2)) if apart == 2 else (parts[0] + parts[1] * 2 - parts[2]).sum(1)
    np.testing.assert_array_equal(found[0], wanted)
