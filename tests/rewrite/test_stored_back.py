"""What is stored on a condition, and loaded anyhow, is always stored where stores of some lanes are slow."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite.rewrite import Normalize, VectorizeLoops

n, m = tl.dims("n m")


def source(body: str) -> str:
    return f"""
n = tl.dim("n")

@tl.kernel
def f(x: tl.f32[n], y: tl.f32[n], at: tl.i64[n]):
    for i in range(n):
        {body}
"""


def vectorized(text: str, target: str) -> tl.PrimFunc:
    return VectorizeLoops(target=target)(Normalize()(tl.parse(text)))


GIVEN = source("if x[i] < y[i]: x[i], y[i] = y[i], 0.0")


def test_what_is_there_is_stored_again() -> None:
    wanted = source(
        "wanted = x[i] < y[i]; value = y[i]; x[i] = tl.select(wanted, value, x[i]); y[i] = tl.select(wanted, 0.0, y[i])"
    )
    found, meant = vectorized(GIVEN, "x86-64-v3"), Normalize()(tl.parse(wanted))
    assert tl.structural_equal(found, meant), str(found)


@pytest.mark.parametrize("target", ["x86-64-v4", "aarch64"])
def test_others_store_some_lanes(target: str) -> None:
    assert tl.structural_equal(vectorized(GIVEN, target), Normalize()(tl.parse(GIVEN)))


@pytest.mark.parametrize(
    "body",
    [
        "if y[i] > 0: x[i] = y[i]",  # what is there is not loaded
        "if x[i] > 0: x[i] = y[at[i]]",  # it may lie nowhere
        "if at[i] > 0: at[i] = 7 // at[i]",  # it may have no value
        "if i > 0 and x[i] > x[i - 1]: x[i] = x[i - 1]",  # the order counts
    ],
)
def test_other_conditions_stay(body: str) -> None:
    given = source(body)
    assert tl.structural_equal(vectorized(given, "x86-64-v3"), Normalize()(tl.parse(given)))


@tl.kernel
def sorted_pairs(x: tl.i32[n]):
    for p in range(n):
        for i in range(p % 2, n - 1, 2):
            if x[i] > x[i + 1]:
                x[i], x[i + 1] = x[i + 1], x[i]


@tl.kernel
def greatest(x: tl.f32[m, n], best: tl.f32[n], at: tl.i32[n]):
    for i in range(m):
        for j in range(n):
            if x[i, j] > best[j]:
                best[j] = x[i, j]
                at[j] = i
        for j in range(n):
            best[j] = max(best[j], 0.0)


@pytest.mark.parametrize("size", [0, 1, 2, 33, 100])
def test_pairs_are_sorted(size: int) -> None:
    x = np.random.default_rng(size).integers(0, 50, size).astype(np.int32)
    wanted = np.sort(x)
    sorted_pairs(x)
    np.testing.assert_array_equal(x, wanted)


@pytest.mark.parametrize("body", ["x[i] = max(x[i], y[i])", "if x[i] < y[i]: x[i] = y[i]"])
def test_all_lanes_are_stored(body: str) -> None:
    target = tl.Target("x86-64-v3")
    assert "vmaskmov" not in tl.compile(tl.parse(source(body)), target=target).asm


def test_nan_stays_where_it_is() -> None:
    x = np.random.default_rng(0).random((7, 90), np.float32) - 0.5
    x[3, ::7] = np.nan
    best, at = np.full(90, -1, np.float32), np.zeros(90, np.int32)
    best[5] = np.nan
    meant = best.copy(), at.copy()
    greatest(x, best, at)
    greatest.interpret(x, *meant)
    np.testing.assert_array_equal(best, meant[0])
    np.testing.assert_array_equal(at, meant[1])
