"""What stays in the array that a loop writes is loaded once before the loop."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite.rewrite import Normalize, VectorizeLoops

n, m = tl.dims("n m")


def vectorized(source: str) -> tl.PrimFunc:
    return VectorizeLoops()(Normalize()(tl.parse(source)))


def source(stmt: str, loop: str = "range(p + 1, n)") -> str:
    return f"""
n = tl.dim("n")

@tl.kernel
def f(a: tl.f64[n, n], b: tl.f64[n, n]):
    for p in range(n):
        for i in range(p + 1, n):
            a[i, p] = a[i, p] / a[p, p]
            for j in {loop}:
                {stmt}
"""


def test_what_stays_is_loaded_once() -> None:
    wanted = """
n = tl.dim("n")

@tl.kernel
def f(a: tl.f64[n, n], b: tl.f64[n, n]):
    for p in range(n):
        for i in range(p + 1, n):
            a[i, p] = a[i, p] / a[p, p]
            if p + 1 < n:
                left = a[i, p]
                for j in range(p + 1, n):
                    a[i, j] = a[i, j] - left * a[p, j]
"""
    found = vectorized(source("a[i, j] = a[i, j] - a[i, p] * a[p, j]"))
    assert tl.structural_equal(found, Normalize()(tl.parse(wanted))), str(found)


@pytest.mark.parametrize(
    ("stmt", "loop"),
    [
        ("a[i, j] = a[i, j] - a[i, p] * a[p, j]", "range(n)"),  # it may be written
        ("a[i, j] = a[i, j] - a[i, p] * a[p, j]", "range(n - 1, p, -1)"),  # as upwards, but rare
        ("a[i, j] = a[i, j] - b[i, p]", "range(p + 1, n)"),  # LLVM sees that itself
        ("a[i, j] = a[i, j] - (a[i, p] if b[i, j] > 0 else 0.0)", "range(p + 1, n)"),  # not all iterations load it
        ("a[i, j] = a[i, j] - tl.let(e, j, a[p, e])", "range(p + 1, n)"),  # it goes along under another name
    ],
)
def test_other_loads_stay(stmt: str, loop: str) -> None:
    given = source(stmt, loop)
    assert tl.structural_equal(vectorized(given), Normalize()(tl.parse(given)))


@tl.kernel
def factorize(a: tl.f64[n, n]):
    for p in range(n):
        for i in range(p + 1, n):
            a[i, p] = a[i, p] / a[p, p]
            for j in range(p + 1, n):
                a[i, j] -= a[i, p] * a[p, j]


@pytest.mark.parametrize("size", [1, 2, 9, 40])
def test_factors_of_a_matrix(size: int) -> None:
    a = np.random.default_rng(size).random((size, size)) + size * np.eye(size)
    found, meant = a.copy(), a.copy()
    factorize(found)
    factorize.interpret(meant)
    assert found.tobytes() == meant.tobytes()
    np.testing.assert_allclose((np.tril(found, -1) + np.eye(size)) @ np.triu(found), a, rtol=1e-12)


@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (5, 40)])
def test_the_first_of_the_greatest_is_found(shape: tuple[int, int]) -> None:
    @tl.kernel
    def greatest(x: tl.f32[n, m], y: tl.out[tl.i64[n]]):
        for i in range(n):
            best = tl.i64(0)
            for j in range(1, m):
                if x[i, j] > x[i, best]:
                    best = j
            y[i] = best

    x = np.random.default_rng(0).integers(0, 9, shape).astype(np.float32)
    np.testing.assert_array_equal(greatest(x), x.argmax(1))
