"""Products of rows with rows, of few terms: they are packed where enough rows share a copy."""

from textwrap import dedent

import numpy as np
import pytest

import tirlite as tl
from tirlite.schedules import Pack, Specialize

SOURCE = """
n = tl.dim("n")

@tl.kernel(allow="reassociate")
def products(a: tl.f32[n, {rows}, {terms}], b: tl.f32[n, 16, {terms}], y: tl.out[tl.f32[n, {rows}, 16]]):
    for q in range(n):
        for i in range({rows}):
            for j in range(16):
                total = 0.0
                for p in range({terms}):
                    total += a[q, i, p] * b[q, j, p]
                y[q, i, j] = total
"""


@pytest.mark.parametrize(
    ("rows", "terms", "is_packed"),
    [(16, 4, False), (16, 16, True), (16, 64, True), (16, 128, False), (4, 16, False)],
)
def test_rows_are_packed_where_their_sums_would_end_by_adding_lanes(rows: int, terms: int, is_packed: bool) -> None:
    """Of what is known no condition is left, though `n` says how many rows there are in all."""
    func = tl.parse(dedent(SOURCE.format(rows=rows, terms=terms)))
    steps = tl.compile(func, target=tl.Target("x86-64-v4")).schedule.steps
    assert any(isinstance(step, Pack) for step in steps) is is_packed
    assert not any(isinstance(step, Specialize) for step in steps)
    numbers = np.random.default_rng(3)
    a = numbers.integers(-8, 8, (3, rows, terms)).astype(np.float32)
    b = numbers.integers(-8, 8, (3, 16, terms)).astype(np.float32)
    np.testing.assert_array_equal(tl.compile(func)(a, b), a @ b.swapaxes(1, 2))
