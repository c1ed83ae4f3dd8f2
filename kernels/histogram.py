"""How often each byte occurs."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.kernels.case import Case

n = tl.dim("n")
BINS = 256
TABLES = 4


@tl.kernel
def histogram(data: tl.u8[n], counts: tl.out[tl.i64[BINS]]):
    """The definition: one table."""
    for value in range(BINS):
        counts[value] = 0
    for i in range(n):
        counts[data[i]] += 1


@tl.kernel
def histogram_split(data: tl.u8[n], counts: tl.out[tl.i32[BINS]]):
    """Neighbours count in tables of their own, so that a run of equal bytes does not wait for its own stores."""
    tables = tl.alloc(tl.i32[TABLES, BINS])
    for table in range(TABLES):
        for value in range(BINS):
            tables[table, value] = 0
    for i in range(n):
        tables[i % TABLES, data[i]] += 1
    for value in range(BINS):
        total = tl.i32(0)
        for table in range(TABLES):
            total += tables[table, value]
        counts[value] = total


def histogram_reference(data: np.ndarray) -> np.ndarray:
    return np.bincount(data, minlength=BINS)


def histogram_split_reference(data: np.ndarray) -> np.ndarray:
    return np.bincount(data, minlength=BINS).astype(np.int32)


def inputs(rng: np.random.Generator, n: int) -> tuple[object, ...]:
    return (rng.integers(0, 256, n, np.uint8),)


KERNELS = (histogram, histogram_split)
SIZES = ((0,), (1,), (10,), (500,))
CASES = (
    Case(histogram, histogram_reference, inputs, SIZES),
    Case(histogram_split, histogram_split_reference, inputs, SIZES),
)
