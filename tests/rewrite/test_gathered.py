"""Reductions over elements that indices in memory name: one loop over eight lanes, the last of which are off."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite.rewrite import CheckReductions, Normalize, SplitReductions

n, m, k = tl.dims("n m k")


def test_a_row_of_a_sparse_matrix_goes_by_one_loop() -> None:
    before = """
        n, m, k = tl.dims("n m k")

        @tl.kernel
        def rows(v: tl.f32[k], at: tl.i32[k], ends: tl.i32[n + 1], x: tl.f32[m], y: tl.f32[n]):
            for i in range(n):
                t = tl.alloc(tl.f32[()], scope="local")
                t[()] = 0.0
                for p in tl.reduce(tl.i64(ends[i]), tl.i64(ends[i + 1])):
                    t[()] += v[p] * x[at[p]]
                y[i] = t[()]
        """
    after = """
        n, m, k = tl.dims("n m k")

        @tl.kernel
        def rows(v: tl.f32[k], at: tl.i32[k], ends: tl.i32[n + 1], x: tl.f32[m], y: tl.f32[n]):
            for i in range(n):
                t = tl.alloc(tl.f32[()], scope="local")
                t[()] = 0.0
                partial = tl.alloc(tl.f32[8], scope="local")
                partial[tl.ramp(0, 1, 8)] = tl.broadcast(tl.f32(-0.0), 8)
                for p in range(tl.i64(ends[i]), tl.i64(ends[i + 1]), 8):
                    left = tl.ramp(tl.i32(0), tl.i32(1), 8) < tl.broadcast(tl.i32(min(tl.i64(ends[i + 1]) - p, 8)), 8)
                    partial[tl.ramp(0, 1, 8)] = tl.select(
                        left,
                        partial[tl.ramp(0, 1, 8)] + v[tl.masked(tl.ramp(p, 1, 8), left)]
                        * x[tl.masked(at[tl.masked(tl.ramp(p, 1, 8), left)], left)],
                        partial[tl.ramp(0, 1, 8)],
                    )
                partial[tl.ramp(0, 1, 4)] = partial[tl.ramp(0, 1, 4)] + partial[tl.ramp(4, 1, 4)]
                partial[tl.ramp(0, 1, 2)] = partial[tl.ramp(0, 1, 2)] + partial[tl.ramp(2, 1, 2)]
                partial[0] = partial[0] + partial[1]
                t[()] = t[()] + partial[0]
                y[i] = t[()]
        """
    found = SplitReductions("x86-64-v4")(CheckReductions()(Normalize()(tl.parse(before))))
    wanted = Normalize()(tl.parse(after))
    assert tl.structural_equal(found, wanted), f"{found}\nis not\n{wanted}"


def _ends(rng: np.random.Generator, longest: int, dtype: type) -> np.ndarray:
    counts = rng.integers(0, longest, 40) * (rng.random(40) < 0.8)
    return np.concatenate([[0], np.cumsum(counts)]).astype(dtype)


@pytest.mark.parametrize("longest", [2, 9, 25, 90])
@pytest.mark.parametrize(("element", "index"), [("f32", "i32"), ("f32", "i64"), ("f64", "i32"), ("i32", "i32")])
def test_rows_of_any_length_are_what_the_lowered_code_says(element: str, index: str, longest: int) -> None:
    kind, at_kind = getattr(tl, element), getattr(tl, index)

    @tl.kernel(allow="contract")
    def rows(v: kind[k], at: at_kind[k], ends: at_kind[n + 1], x: kind[m], y: tl.out[kind[n]], low: tl.out[kind[n]]):
        for i in range(n):
            t = kind(1)
            for p in tl.reduce(ends[i], ends[i + 1]):
                t += v[p] * x[at[p]]
            y[i] = t
            low[i] = 100
            for p in tl.reduce(ends[i], ends[i + 1]):
                low[i] = min(low[i], x[at[p]])

    rng = np.random.default_rng(longest)
    to = np.dtype({"f": "float", "i": "int"}[element[0]] + element[1:])
    ends = _ends(rng, longest, np.int32 if index == "i32" else np.int64)
    count = max(1, int(ends[-1]))
    v, x = (rng.standard_normal(count) * 9).astype(to), (rng.standard_normal(50) * 9).astype(to)
    at = rng.integers(0, 50, count).astype(ends.dtype)
    first = [np.zeros(40, to), np.zeros(40, to)]
    again = [np.zeros(40, to), np.zeros(40, to)]
    rows(v, at, ends, x, *first)
    tl.compile(rows.lowered).interpret(v, at, ends, x, *again)
    for one, other in zip(first, again, strict=True):
        assert one.tobytes() == other.tobytes()
    sums = [1 + (v[a:b].astype(float) * x[at[a:b]]).sum() for a, b in zip(ends, ends[1:], strict=False)]
    np.testing.assert_allclose(first[0], sums, rtol=1e-3, atol=1e-3)
