"""Sums of stretches of a vector: each block of threads folds its stretch in half, again and again."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.kernels.case import Case

n = tl.dim("n")
STEPS = 5
THREADS = 1 << STEPS


@tl.kernel
def block_sum(x: tl.f32[n], sums: tl.out[tl.f32[(n + THREADS - 1) // THREADS]]):
    """sums[i] is the sum of the i-th 32 elements of x; the last stretch may be shorter."""
    for b in tl.thread("blockIdx.x", (n + THREADS - 1) // THREADS):
        folded = tl.alloc(tl.f32[THREADS], scope="shared")
        for t in tl.thread("threadIdx.x", THREADS):
            i = b * THREADS + t
            folded[t] = x[i] if i < n else 0
            for step in range(STEPS):
                half = THREADS >> (step + 1)
                tl.barrier("shared")
                if t < half:
                    folded[t] += folded[t + half]
            if t == 0:
                sums[b] = folded[0]


def reference(x: np.ndarray) -> np.ndarray:
    blocks = -(-len(x) // THREADS)
    folded = np.pad(x, (0, blocks * THREADS - len(x))).reshape(blocks, THREADS)
    while folded.shape[1] > 1:
        half = folded.shape[1] // 2
        folded = folded[:, :half] + folded[:, half:]
    return folded[:, 0]


def inputs(rng: np.random.Generator, n: int) -> tuple[object, ...]:
    return (rng.standard_normal(n, np.float32),)


KERNELS = (block_sum,)
CASES = (Case(block_sum, reference, inputs, ((0,), (1,), (31,), (64,), (70,))),)
