"""Sums of all beginnings of a vector: in one go, and in blocks that run in parallel."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.kernels.case import Case

n = tl.dim("n")
BLOCK = 16


@tl.kernel
def prefix_sum(x: tl.i32[n], y: tl.out[tl.i64[n]]):
    """y[i] = x[0] + ... + x[i]."""
    total = tl.i64(0)
    for i in range(n):
        total += x[i]
        y[i] = total


@tl.kernel
def prefix_sum_blocks(x: tl.i32[n], y: tl.out[tl.i64[n]]):
    """The same: sums within blocks, then over the blocks, then both together."""
    before = tl.alloc(tl.i64[(n + BLOCK - 1) // BLOCK + 1])
    for block in tl.parallel((n + BLOCK - 1) // BLOCK):
        total = tl.i64(0)
        for i in range(block * BLOCK, min(block * BLOCK + BLOCK, n)):
            total += x[i]
            y[i] = total
        before[block + 1] = total
    before[0] = 0
    for block in range((n + BLOCK - 1) // BLOCK):
        before[block + 1] += before[block]
    for block in tl.parallel((n + BLOCK - 1) // BLOCK):
        for i in range(block * BLOCK, min(block * BLOCK + BLOCK, n)):
            y[i] += before[block]


def reference(x: np.ndarray) -> np.ndarray:
    return np.cumsum(x, dtype=np.int64)


def inputs(rng: np.random.Generator, n: int) -> tuple[object, ...]:
    return (rng.integers(-(2**31), 2**31, n, np.int32),)


KERNELS = (prefix_sum, prefix_sum_blocks)
CASES = tuple(Case(kernel, reference, inputs, ((0,), (1,), (16,), (17,), (70,))) for kernel in KERNELS)
