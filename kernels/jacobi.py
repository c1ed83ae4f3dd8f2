"""Jacobi's method for Laplace's equation on a rectangle: each inner point becomes the mean of its four neighbours."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.kernels.case import Case

n, m = tl.dims("n m")


@tl.kernel
def jacobi(u: tl.f64[n, m], steps: tl.i64, result: tl.out[tl.f64[n, m]]):
    """`steps` steps from u on, whose frame is the boundary condition and stays as it is."""
    old = tl.alloc(tl.f64[n, m])
    for i in tl.parallel(n):
        for j in range(m):
            old[i, j] = u[i, j]
    for _step in range(steps):
        new = tl.alloc(tl.f64[n, m])
        for i in tl.parallel(1, n - 1):
            for j in range(1, m - 1):
                new[i, j] = (old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1]) / 4
        for i in tl.parallel(1, n - 1):
            for j in range(1, m - 1):
                old[i, j] = new[i, j]
    for i in tl.parallel(n):
        for j in range(m):
            result[i, j] = old[i, j]


def reference(u: np.ndarray, steps: int) -> np.ndarray:
    result = u.copy()
    for _ in range(steps):
        result[1:-1, 1:-1] = (result[:-2, 1:-1] + result[2:, 1:-1] + result[1:-1, :-2] + result[1:-1, 2:]) / 4
    return result


def inputs(rng: np.random.Generator, n: int, m: int, steps: int) -> tuple[object, ...]:
    return rng.random((n, m)), steps


KERNELS = (jacobi,)
CASES = (Case(jacobi, reference, inputs, ((0, 4, 1), (1, 1, 2), (2, 5, 1), (3, 3, 0), (6, 9, 4))),)
