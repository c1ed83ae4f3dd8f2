"""The softmax of each row of a matrix."""

from __future__ import annotations

from math import inf

import numpy as np

import tirlite as tl
from tirlite.kernels.case import Case

n, m = tl.dims("n m")


@tl.kernel
def softmax(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
    """y = exp(x) / sum(exp(x)) along rows; each row's maximum is taken off first, so that exp does not overflow."""
    largest = tl.alloc(tl.f32[n])
    shifted = tl.alloc(tl.f32[n, m])
    growth = tl.alloc(tl.f32[n, m])
    total = tl.alloc(tl.f32[n])
    for i in tl.parallel(n):
        largest[i] = -inf
        for j in range(m):
            largest[i] = max(largest[i], x[i, j])
    for i in tl.parallel(n):
        for j in range(m):
            shifted[i, j] = x[i, j] - largest[i]
    for i in tl.parallel(n):
        for j in range(m):
            growth[i, j] = tl.exp(shifted[i, j])
    for i in tl.parallel(n):
        total[i] = 0
        for j in range(m):
            total[i] += growth[i, j]
    for i in tl.parallel(n):
        for j in range(m):
            y[i, j] = growth[i, j] / total[i]


def reference(x: np.ndarray) -> np.ndarray:
    growth = np.exp(x - x.max(axis=1, keepdims=True, initial=-np.inf))
    return growth / growth.sum(axis=1, keepdims=True)


def inputs(rng: np.random.Generator, n: int, m: int) -> tuple[object, ...]:
    return (10 * rng.standard_normal((n, m), np.float32),)


KERNELS = (softmax,)
CASES = (Case(softmax, reference, inputs, ((0, 4), (3, 0), (1, 1), (4, 7), (2, 33)), tolerance=1e-6),)
