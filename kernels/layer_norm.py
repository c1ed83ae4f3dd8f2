"""Each row of a matrix brought to mean 0 and variance 1, then scaled and shifted by column."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.kernels.case import Case

n, m = tl.dims("n m")
EPSILON = 1e-5


@tl.inline
def mean_of(row, i):
    """The mean of row `i` of a matrix."""
    total = 0.0
    for j in range(row.shape[1]):
        total += row[i, j]
    return total / tl.f32(row.shape[1])


@tl.kernel
def layer_norm(x: tl.f32[n, m], gain: tl.f32[m], shift: tl.f32[m], y: tl.out[tl.f32[n, m]]):
    """y = (x - mean) / sqrt(variance + EPSILON) * gain + shift, mean and variance along rows."""
    centred = tl.alloc(tl.f32[n, m])
    squared = tl.alloc(tl.f32[n, m])
    for i in tl.parallel(n):
        mean = mean_of(x, i)
        for j in range(m):
            centred[i, j] = x[i, j] - mean
    for i in tl.parallel(n):
        for j in range(m):
            squared[i, j] = centred[i, j] * centred[i, j]
    for i in tl.parallel(n):
        deviation = tl.sqrt(mean_of(squared, i) + EPSILON)
        for j in range(m):
            y[i, j] = centred[i, j] / deviation * gain[j] + shift[j]


def reference(x: np.ndarray, gain: np.ndarray, shift: np.ndarray) -> np.ndarray:
    if not x.size:
        return x.copy()
    centred = x - x.mean(axis=1, keepdims=True)
    deviation = np.sqrt((centred * centred).mean(axis=1, keepdims=True) + np.float32(EPSILON))
    return centred / deviation * gain + shift


def inputs(rng: np.random.Generator, n: int, m: int) -> tuple[object, ...]:
    columns = (rng.standard_normal(m, np.float32) for _ in range(2))
    return (3 + rng.standard_normal((n, m), np.float32), *columns)


KERNELS = (layer_norm,)
CASES = (Case(layer_norm, reference, inputs, ((0, 4), (3, 0), (1, 2), (4, 7), (2, 33)), tolerance=1e-5),)
