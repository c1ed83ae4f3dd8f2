"""The index of the largest element in each row of a matrix."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.kernels.case import Case

n, m = tl.dims("n m")


@tl.kernel
def argmax(x: tl.f32[n, m], place: tl.out[tl.i64[n]]):
    """The first of the columns that hold the largest element; a nan counts as larger than all."""
    for i in tl.parallel(n):
        best = tl.i64(0)
        for j in range(1, m):
            if x[i, j] > x[i, best] or (tl.isnan(x[i, j]) and not tl.isnan(x[i, best])):
                best = j
        place[i] = best


def reference(x: np.ndarray) -> np.ndarray:
    return np.argmax(x, axis=1)


def inputs(rng: np.random.Generator, n: int, m: int) -> tuple[object, ...]:
    x = rng.integers(-3, 4, (n, m)).astype(np.float32)
    x[rng.random((n, m)) < 0.1] = np.nan
    return (x,)


KERNELS = (argmax,)
CASES = (Case(argmax, reference, inputs, ((0, 3), (1, 1), (5, 2), (9, 13), (20, 40))),)
