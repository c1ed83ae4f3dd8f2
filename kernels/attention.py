"""Attention: each query takes the mean of the values, weighted by how well their keys answer it."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.kernels.case import Case
from tirlite.kernels.softmax import softmax

heads, n, m, d, e = tl.dims("heads n m d e")


@tl.kernel
def attention(q: tl.f32[heads, n, d], k: tl.f32[heads, m, d], v: tl.f32[heads, m, e], y: tl.out[tl.f32[heads, n, e]]):
    """y = softmax(q @ k.T / sqrt(d)) @ v, for each head."""
    for head in range(heads):
        scores = tl.alloc(tl.f32[n, m])
        weights = tl.alloc(tl.f32[n, m])
        for i in tl.parallel(n):
            for j in range(m):
                scores[i, j] = 0
                for p in range(d):
                    scores[i, j] += q[head, i, p] * k[head, j, p]
                scores[i, j] /= tl.sqrt(tl.f32(d))
        softmax(scores, weights)
        for i in tl.parallel(n):
            for c in range(e):
                total = 0.0
                for j in range(m):
                    total += weights[i, j] * v[head, j, c]
                y[head, i, c] = total


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    scores = np.einsum("hid,hjd->hij", q, k) / np.sqrt(np.float32(max(q.shape[2], 1)))
    growth = np.exp(scores - scores.max(axis=2, keepdims=True, initial=-np.inf))
    return np.einsum("hij,hje->hie", growth / growth.sum(axis=2, keepdims=True), v)


def inputs(rng: np.random.Generator, heads: int, n: int, m: int, d: int, e: int) -> tuple[object, ...]:
    shapes = ((heads, n, d), (heads, m, d), (heads, m, e))
    return tuple(rng.standard_normal(shape, np.float32) for shape in shapes)


KERNELS = (attention,)
SIZES = ((0, 2, 3, 4, 5), (2, 0, 3, 4, 5), (1, 1, 1, 1, 1), (2, 3, 4, 5, 6), (1, 7, 5, 8, 4))
CASES = (Case(attention, reference, inputs, SIZES, tolerance=1e-5),)
