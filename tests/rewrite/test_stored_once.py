"""A loop that stores in one iteration what all of them load is parted behind that one."""

from __future__ import annotations

import numpy as np
import pytest
from every import every
from rewrite.before_after import BeforeAfter

import tirlite as tl
from tirlite.ir import For, Store, statements_of
from tirlite.rewrite import Normalize, PartitionLoops, VectorizeLoops

n, m = tl.dims("n m")


def source(stmt: str) -> str:
    return f"""
n = tl.dim("n")

@tl.kernel
def f(d: tl.f32[n, n], b: tl.f32[n, n], at: tl.i64[n]):
    for k in range(n):
        for i in range(n):
            for j in range(n):
                {stmt}
"""


def test_each_part_loads_it_once() -> None:
    BeforeAfter((PartitionLoops(),)).expect(
        """
        for k in range(m):
            for i in range(n):
                for j in range(m):
                    x[i, j] = min(x[i, j], x[i, k] + y[i, j])
        """,
        """
        for k in range(m):
            for i in range(n):
                before = x[i, k]
                for j in range(k + 1):
                    x[i, j] = min(x[i, j], before + y[i, j])
                if k + 1 < m:
                    behind = x[i, k]
                    for j in range(k + 1, m):
                        x[i, j] = min(x[i, j], behind + y[i, j])
        """,
    )


@every(
    "stmt",
    [
        "d[i, j] = min(d[i, j], b[i, k] + d[k, j])",  # nothing stays
        "d[i, at[j]] = d[i, k] + d[k, j]",  # it may be stored at any time
        "d[i, j // 2] = d[i, k] + d[k, j]",  # twice
        "d[i, j], b[i, j] = d[i, k], b[i, k]",  # two arrays
        "d[i, j] = d[i, k] if b[i, j] > 0 else 0.0",  # not all iterations load it
        "d[i, j] = d[i, k] + d[i, k + 1 - 1 - n // n]",  # two places
        "d[i, j], d[i, n - 1 - j] = d[i, k], d[k, j]",  # by two stores
        "d[i, j] = d[i, k] + d[i, j - 1] if j > 0 else d[i, k]",  # the order counts
    ],
)
def test_other_loops_stay(stmt: str) -> None:
    func = Normalize()(tl.parse(source(stmt)))
    assert len([*statements_of(PartitionLoops()(func).body, For)]) == 3


@tl.kernel
def shortest(d: tl.f32[n, n]):
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])


@tl.kernel
def shorter(d: tl.i32[n, n]):
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]


@tl.kernel
def scaled(d: tl.f32[n, n]):
    for i in range(n):
        for j in range(n):
            d[i, j] = d[i, j] / d[i, i]


@pytest.mark.parametrize("kernel", [shortest, shorter, scaled])
@pytest.mark.parametrize("size", [1, 2, 21, 83])
def test_what_is_stored_on_the_way_counts(kernel: tl.Kernel, size: int) -> None:
    dtype = np.int32 if kernel is shorter else np.float32
    d = np.random.default_rng(size).integers(-2, 100, (size, size)).astype(dtype)  # also on the diagonal
    if size < 40:
        found, meant = d.copy(), d.copy()
        with np.errstate(all="ignore"):
            kernel.interpret(meant)
    else:
        meant = tl.compile(kernel.ir, schedule=None)
        found, other = d.copy(), d.copy()
        meant(other)
        meant = other
    kernel(found)
    np.testing.assert_array_equal(found, meant)


def test_rows_of_one_array_go_by_vectors() -> None:
    func = VectorizeLoops()(PartitionLoops()(Normalize()(shortest.ir)))
    # Four vectors of floats.
    lanes = min(64, tl.Target.host().processor.vector_bytes)
    assert max(store.value.dtype.lanes for store in statements_of(func.body, Store)) == lanes
