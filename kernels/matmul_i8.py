"""The product of two matrices of bytes, summed in 32 bits, as quantised networks have it."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.kernels.case import Case

n, m, k = tl.dims("n m k")


@tl.kernel
def matmul_i8(a: tl.i8[n, k], b: tl.i8[k, m], c: tl.out[tl.i32[n, m]]):
    """c = a @ b in i32, which holds the sums of 2**16 products."""
    for i in tl.parallel(n):
        for j in range(m):
            c[i, j] = 0
        for p in range(k):
            for j in range(m):
                c[i, j] += tl.i32(a[i, p]) * tl.i32(b[p, j])


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.int32) @ b.astype(np.int32)


def inputs(rng: np.random.Generator, n: int, m: int, k: int) -> tuple[object, ...]:
    return rng.integers(-128, 128, (n, k), np.int8), rng.integers(-128, 128, (k, m), np.int8)


KERNELS = (matmul_i8,)
CASES = (Case(matmul_i8, reference, inputs, ((0, 3, 2), (3, 2, 0), (1, 1, 1), (8, 8, 8), (5, 9, 11))),)
