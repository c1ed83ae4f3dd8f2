"""The transpose by blocks of threads, through a tile in shared memory: rows are read along, and written along."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.kernels.case import Case

n, m = tl.dims("n m")
TILE = 8


@tl.kernel
def block_transpose(x: tl.f32[n, m], y: tl.out[tl.f32[m, n]]):
    """y = x.T, a tile for each block. The tile has a column too many, so that its columns lie in different banks."""
    for by in tl.thread("blockIdx.y", (n + TILE - 1) // TILE):
        for bx in tl.thread("blockIdx.x", (m + TILE - 1) // TILE):
            for ty in tl.thread("threadIdx.y", TILE):
                for tx in tl.thread("threadIdx.x", TILE):
                    tile = tl.alloc(tl.f32[TILE, TILE + 1], scope="shared")
                    if by * TILE + ty < n and bx * TILE + tx < m:
                        tile[ty, tx] = x[by * TILE + ty, bx * TILE + tx]
                    tl.barrier("shared")
                    if bx * TILE + ty < m and by * TILE + tx < n:
                        y[bx * TILE + ty, by * TILE + tx] = tile[tx, ty]


def reference(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x.T)


def inputs(rng: np.random.Generator, n: int, m: int) -> tuple[object, ...]:
    return (rng.standard_normal((n, m), np.float32),)


KERNELS = (block_transpose,)
CASES = (Case(block_transpose, reference, inputs, ((0, 3), (3, 0), (1, 1), (8, 8), (5, 11))),)
