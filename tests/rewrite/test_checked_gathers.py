"""Rows that one worker goes through check their indices where vectors gather; faults are those of rows in order."""

from __future__ import annotations

import numpy as np
import pytest
from told import told_by

import tirlite as tl

n, m, k = tl.dims("n m k")
ROWS, COLUMNS = 30, 50


@tl.kernel(allow="contract")
def of_scalars(v: tl.f32[k], at: tl.i32[k], ends: tl.i32[n + 1], x: tl.f32[m], z: tl.f32[m + 3], y: tl.f32[n]):
    for i in range(n):
        t = tl.f32(0)
        for p in tl.reduce(ends[i], ends[i + 1]):
            t += v[p] * x[at[p]]
        y[i] = t


@tl.kernel(allow="contract")
def of_elements(v: tl.f32[k], at: tl.i64[k], ends: tl.i32[n + 1], x: tl.f32[m], z: tl.f32[m + 3], y: tl.f32[n]):
    for i in range(n):
        for p in tl.reduce(ends[i], ends[i + 1]):
            y[i] += v[p] * x[at[p] - 1]


@tl.kernel
def of_two(v: tl.f32[k], at: tl.i32[k], ends: tl.i32[n + 1], x: tl.f32[m], z: tl.f32[m + 3], y: tl.f32[n]):
    for i in range(n):
        t = tl.f32(0)
        for p in tl.reduce(ends[i], ends[i + 1]):
            j = at[p]
            t += v[p] * z[j + 2] * x[j]
        y[i] = t


@tl.kernel
def of_lookups(v: tl.f32[k], at: tl.i32[k], ends: tl.i32[n + 1], x: tl.f32[m], z: tl.f32[m + 3], y: tl.f32[n]):
    for i in range(n):
        y[i] = -100
        for p in tl.reduce(ends[i], ends[i + 1]):
            y[i] = max(y[i], x[tl.checked(at[at[p] % k])])


KERNELS = [of_scalars, of_elements, of_two, of_lookups]


def _given(rng: np.random.Generator, dtype: type) -> list[np.ndarray]:
    counts = rng.integers(0, 30, ROWS) * (rng.random(ROWS) < 0.8)
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    count = max(1, int(ends[-1]))
    at = rng.integers(1, COLUMNS, count).astype(dtype)
    # Sums of these are the same in any order.
    v, x, z, y = (rng.integers(-9, 9, each).astype(np.float32) for each in (count, COLUMNS, COLUMNS + 3, ROWS))
    return [v, at, ends, x, z, y]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda each: each.ir.name)
def test_faults_and_the_stores_before_are_those_of_rows_in_order(kernel: tl.Kernel, workers: int) -> None:
    made = tl.compile(kernel, target=tl.Target.host(workers=workers))
    rng = np.random.default_rng(3)
    for trial in range(40):
        args = _given(rng, np.int64 if kernel is of_elements else np.int32)
        for _ in range(trial % 3):
            args[1][rng.integers(len(args[1]))] = rng.choice(
                [-1, 0, COLUMNS, COLUMNS + 1, COLUMNS + 2, 2**31 - 1, -(2**31)]
            )
        if trial % 10 == 9:
            args[2][rng.integers(ROWS)] += rng.choice([-40, 40, 2**20])
        same = [each.copy() for each in args]
        told, wanted = told_by(made, args), told_by(made.interpret, same)
        assert told == wanted
        np.testing.assert_array_equal(args[-1], same[-1], err_msg=wanted)


@pytest.mark.skipif(not tl.target.processor.processor_called("host").masks_gathers, reason="gathers have no masks")
def test_one_worker_looks_at_no_array_of_indices_beforehand() -> None:
    text = {w: str(tl.compile(of_scalars, target=tl.Target.host(workers=w)).lowered) for w in (1, 2)}
    assert "greatest_at" not in text[1]
    assert "tl.checked(at[p" in text[1]
    assert "greatest_at" in text[2]
    # What is summed, and in which order, is the same.
    assert all(
        "t[()] = t[()] + partial[0]" in each and "range(tl.i64(ends[i]), tl.i64(ends[i + 1]), 8)" in each
        for each in text.values()
    )
