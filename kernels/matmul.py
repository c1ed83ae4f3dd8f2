"""Matrix products: by the definition, and in tiles that are copied together before they are used."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.kernels.case import Case

n, m, k = tl.dims("n m k")
TILE = 8


@tl.kernel
def matmul(a: tl.f32[n, k], b: tl.f32[k, m], c: tl.out[tl.f32[n, m]]):
    """c = a @ b, by the definition."""
    for i in tl.parallel(n):
        for j in range(m):
            total = tl.f32(0)
            for p in range(k):
                total += a[i, p] * b[p, j]
            c[i, j] = total


@tl.kernel
def matmul_tiled(a: tl.f32[n, k], b: tl.f32[k, m], c: tl.out[tl.f32[n, m]]):
    """c = a @ b, a square tile of c at a time; tiles over the edge are filled up with zeros."""
    for i0 in tl.parallel(0, n, TILE):
        for j0 in range(0, m, TILE):
            total = tl.alloc(tl.f32[TILE, TILE])
            for i in range(TILE):
                for j in range(TILE):
                    total[i, j] = 0
            for p0 in range(0, k, TILE):
                left = tl.alloc(tl.f32[TILE, TILE])
                right = tl.alloc(tl.f32[TILE, TILE])
                for i in range(TILE):
                    for p in range(TILE):
                        left[i, p] = a[i0 + i, p0 + p] if i0 + i < n and p0 + p < k else 0
                for p in range(TILE):
                    for j in range(TILE):
                        right[p, j] = b[p0 + p, j0 + j] if p0 + p < k and j0 + j < m else 0
                for i in range(TILE):
                    for p in range(TILE):
                        for j in range(TILE):
                            total[i, j] += left[i, p] * right[p, j]
            for i in range(min(TILE, n - i0)):
                for j in range(min(TILE, m - j0)):
                    c[i0 + i, j0 + j] = total[i, j]


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b


def inputs(rng: np.random.Generator, n: int, m: int, k: int) -> tuple[object, ...]:
    return rng.standard_normal((n, k), np.float32), rng.standard_normal((k, m), np.float32)


KERNELS = (matmul, matmul_tiled)
SIZES = ((0, 3, 2), (3, 2, 0), (1, 1, 1), (8, 8, 8), (5, 9, 11))
CASES = tuple(Case(kernel, reference, inputs, SIZES, tolerance=1e-5) for kernel in KERNELS)
