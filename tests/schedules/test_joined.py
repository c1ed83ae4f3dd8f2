"""What tirlite does with short chains: some rows at once compute what they read of the nest before, in registers."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite.schedules import ComputeAt

TARGET = tl.Target("x86-64-v4")

CHAIN = """
n, m = tl.dims("n m")

@tl.kernel
def chain(x: tl.{dtype}[n + 6, m + 6], y: tl.out[tl.{dtype}[n, m]]):
    rows = tl.alloc(tl.{dtype}[n + 6, m + 6])
    for i in range(n + 6):
        for j in range(m + 6):
            rows[i, j] = {filled}
    for i in range(n):
        for j in range(m):
            y[i, j] = {read}
"""


def chain(dtype: str, filled: str, read: str) -> tl.ir.PrimFunc:
    return tl.parse(CHAIN.format(dtype=dtype, filled=filled, read=read))


@pytest.mark.parametrize("dtype", ["u8", "i16", "f32", "f64"])
def test_few_rows_are_computed_where_they_are_read(dtype: str) -> None:
    func = chain(dtype, "x[i, j] + x[i, max(j - 1, 0)] * 3", "rows[i, j] - rows[i + 1, j] + rows[i + 2, j] * 2")
    steps = [str(step) for step in tl.compile(func, target=TARGET).schedule.steps]
    assert steps[:2] == ["s.inline('rows')", "s.unroll_jam('i', 4)"]
    joined, plain = tl.compile(func), tl.compile(func, schedule=None)
    rng = np.random.default_rng(3)
    for n, m in ((1, 1), (3, 70), (4, 64), (7, 5), (18, 131)):
        x = rng.integers(0, 50, (n + 6, m + 6)).astype(func.params[0].dtype.numpy)  # type: ignore[union-attr]
        np.testing.assert_array_equal(joined(x), plain(x))


@pytest.mark.parametrize(
    ("filled", "read"),
    [
        ("(x[i, j] + 1) * 2 - x[i, 0] * 3 + x[0, j] / 7 - 4", "rows[i, j] + rows[i + 2, j] + rows[i + 4, j]"),
        ("tl.exp(x[i, j])", "rows[i, j] + rows[i + 1, j]"),
        ("x[i, j] + 1", "rows[i, j] + rows[max(i - 1, 0), j]"),
        ("x[i, j] + x[j, i] * 2 - x[i, 0]", "rows[i, j] + rows[i, j + 1] + rows[i, j + 2] + rows[i + 1, j + 3]"),
        ("x[i, j] * 2", "rows[i, j] + rows[i + 2, j] + rows[i + 4, j] + rows[i + 6, j]"),
    ],
    ids=["much to compute again", "a function", "not at a distance", "columns", "more than registers hold"],
)
def test_others_are_kept(filled: str, read: str) -> None:
    schedule = tl.compile(chain("f32", filled, read), target=TARGET).schedule
    assert not any(str(step).startswith("s.inline") for step in schedule.steps)
    assert any(isinstance(step, ComputeAt) for step in schedule.steps)
