"""A sparse matrix times a vector, the matrix in compressed rows (CSR)."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.kernels.case import Case

entries, m, ends = tl.dims("entries m ends")


@tl.kernel
def spmv(
    starts: tl.i32[ends],
    columns: tl.i32[entries],
    values: tl.f32[entries],
    x: tl.f32[m],
    y: tl.out[tl.f32[ends - 1]],
):
    """y = a @ x; row i of a holds values[k] in columns[k] for k from starts[i] to below starts[i + 1]."""
    for i in tl.parallel(ends - 1):
        total = 0.0
        for k in range(starts[i], starts[i + 1]):
            total += values[k] * x[columns[k]]
        y[i] = total


def reference(starts: np.ndarray, columns: np.ndarray, values: np.ndarray, x: np.ndarray) -> np.ndarray:
    dense = np.zeros((len(starts) - 1, len(x)), np.float32)
    for i in range(len(starts) - 1):
        for k in range(starts[i], starts[i + 1]):
            dense[i, columns[k]] += values[k]
    return dense @ x


def inputs(rng: np.random.Generator, rows: int, m: int) -> tuple[object, ...]:
    counts = rng.integers(0, min(m, 5) + 1, rows)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    columns = rng.integers(0, max(m, 1), starts[-1], np.int32)
    return starts, columns, rng.standard_normal(starts[-1], np.float32), rng.standard_normal(m, np.float32)


KERNELS = (spmv,)
CASES = (Case(spmv, reference, inputs, ((0, 3), (3, 0), (1, 1), (6, 9), (20, 4)), tolerance=1e-5),)
