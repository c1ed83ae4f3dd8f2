"""The matrix product by blocks of threads: each block loads tiles of both factors together, and meets at barriers."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.kernels.case import Case

n, m, k = tl.dims("n m k")
TILE = 8


@tl.kernel
def block_matmul(a: tl.f32[n, k], b: tl.f32[k, m], c: tl.out[tl.f32[n, m]]):
    """c = a @ b. Each thread computes one element of c; what the threads of a block load, all of them use."""
    for by in tl.thread("blockIdx.y", (n + TILE - 1) // TILE):
        for bx in tl.thread("blockIdx.x", (m + TILE - 1) // TILE):
            left = tl.alloc(tl.f32[TILE, TILE], scope="shared")
            right = tl.alloc(tl.f32[TILE, TILE], scope="shared")
            for ty in tl.thread("threadIdx.y", TILE):
                for tx in tl.thread("threadIdx.x", TILE):
                    row = by * TILE + ty
                    column = bx * TILE + tx
                    total = tl.f32(0)
                    for p0 in range(0, k, TILE):
                        left[ty, tx] = a[row, p0 + tx] if row < n and p0 + tx < k else 0
                        right[ty, tx] = b[p0 + ty, column] if p0 + ty < k and column < m else 0
                        tl.barrier("shared")
                        for p in range(TILE):
                            total += left[ty, p] * right[p, tx]
                        tl.barrier("shared")
                    if row < n and column < m:
                        c[row, column] = total


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b


def inputs(rng: np.random.Generator, n: int, m: int, k: int) -> tuple[object, ...]:
    return rng.standard_normal((n, k), np.float32), rng.standard_normal((k, m), np.float32)


KERNELS = (block_matmul,)
SIZES = ((0, 3, 2), (3, 2, 0), (1, 1, 1), (8, 8, 8), (5, 9, 11))
CASES = (Case(block_matmul, reference, inputs, SIZES, tolerance=1e-5),)
