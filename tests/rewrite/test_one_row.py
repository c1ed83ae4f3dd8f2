"""Nests that go over whole rows go by vectors as one loop over the elements of views, and compute the same."""

import numpy as np
import pytest
from fuzz.guard import guarded
from rewrite.before_after import kernel

import tirlite as tl
from tirlite.rewrite import VectorizeLoops

c, n, m, k = tl.dims("c n m k")


@tl.kernel
def curved(x: tl.f32[n + 1, m], y: tl.f32[n, m]):
    for i in range(n):
        for j in range(m):
            y[i, j] = 1 / (1 + tl.exp(-x[i + 1, j]))


@tl.kernel
def by_channels(x: tl.f32[c, n, m], gain: tl.f32[c], y: tl.f32[c, n, m]):
    for k in range(c):
        for i in range(1, n):
            for j in range(m):
                y[k, i, j] = tl.exp(x[k, i, j]) * gain[k]


@tl.kernel
def in_place(x: tl.f32[n, m]):
    for i in range(1, n):
        for j in range(m):
            if x[i, j] > 0:
                x[i, j] = tl.exp(x[i, j])


@tl.kernel
def by_columns(x: tl.f32[n, m], bias: tl.f32[m], y: tl.f32[n, m]):
    for i in range(n):
        for j in range(m):
            y[i, j] = tl.exp(x[i, j] + bias[j])


def evaluated(extent: object, dims: dict[str, int]) -> int:
    return int(eval(str(extent), {}, dims))


@pytest.mark.parametrize("each", [curved, by_channels, in_place, by_columns])
def test_rows_of_all_lengths_give_what_the_interpreter_does(each: tl.Kernel) -> None:
    """Forbidden pages lie behind the arrays."""
    assert ("x_flat" in str(each.lowered)) == (each is not by_columns)
    draw = np.random.default_rng(0)
    for sizes in ((1, 1, 1), (19, 1, 1), (3, 2, 7), (2, 3, 67)):
        dims = dict(zip("ncm", sizes, strict=True))
        shapes = [[evaluated(extent, dims) for extent in param.shape] for param in each.ir.params]
        given = [draw.standard_normal(shape, np.float32) for shape in shapes]
        results = []
        for run in (each, each.interpret):
            arrays = [guarded(array, at_end=True) for array in given]
            run(*arrays)
            results.append(arrays)
        for ours, wanted in zip(*results, strict=True):
            np.testing.assert_array_equal(ours, wanted)


def test_what_is_no_whole_row_stays_a_nest() -> None:
    for body in ("y[i, j] = tl.exp(x[i, j]) + j", "y[i, j] = tl.exp(x[i, 0])", "y[i, m - 1 - j] = tl.exp(x[i, j])"):
        text = str(VectorizeLoops()(kernel(f"for i in range(n):\n    for j in range(m):\n        {body}")))
        assert "flat" not in text


@tl.kernel(allow="contract")
def channels(x: tl.f32[n + k, 4], f: tl.f32[k], y: tl.out[tl.f32[n, 4]]):
    for i in range(n):
        for q in range(4):
            y[i, q] = 0
            for p in tl.reduce(k):
                y[i, q] += f[p] * x[i + p, q]


@tl.kernel(allow="contract")
def mixed(x: tl.f32[n, 4], f: tl.f32[4, k], y: tl.out[tl.f32[n, 4]]):
    for i in range(n):
        for q in range(4):
            y[i, q] = 0
            for p in tl.reduce(k):
                y[i, q] += f[q, p] * x[i, q]


def test_short_rows_with_a_loop_for_each_element_fill_vectors() -> None:
    target = tl.Target("x86-64-v4")
    assert "y_flat[tl.ramp(q, 1, 64)]" in str(tl.compile(channels, target=target).lowered)
    assert "_flat" not in str(tl.compile(mixed, target=target).lowered)
    draw = np.random.default_rng(0)
    for rows in (1, 3, 4, 15, 16, 17, 40):
        for taps in (1, 3, 9):
            x, f = draw.integers(-9, 9, (rows + taps, 4)), draw.integers(-9, 9, taps)
            given = x.astype(np.float32), f.astype(np.float32)
            wanted = sum(f[tap] * x[tap : tap + rows] for tap in range(taps))
            np.testing.assert_array_equal(channels(*given), wanted)
