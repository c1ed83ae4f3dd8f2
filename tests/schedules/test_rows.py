"""What tirlite does with rows that go through several loops: by blocks, where these combine the same for all rows."""

from __future__ import annotations

import numpy as np
import pytest
from effort import effort
from small_tiles import small_tiles

import tirlite as tl
from tirlite.codegen import Effort
from tirlite.schedules import Expand, Precompute

n, m, d, h = tl.dims("n m d h")


@tl.kernel
def attention(q: tl.f32[h, n, d], k: tl.f32[h, m, d], v: tl.f32[h, m, d], y: tl.out[tl.f32[h, n, d]]):
    for a in range(h):
        for i in range(n):
            score = tl.alloc(tl.f32[m])
            top = tl.f32(-1e30)
            for j in range(m):
                score[j] = 0
                for p in tl.reduce(d):
                    score[j] += q[a, i, p] * k[a, j, p]
            for j in tl.reduce(m):
                top = max(top, score[j])
            total = tl.f32(0)
            for j in tl.reduce(m):
                total += tl.exp(score[j] - top)
            for p in range(d):
                y[a, i, p] = 0
                for j in tl.reduce(m):
                    y[a, i, p] += tl.exp(score[j] - top) * v[a, j, p]
                y[a, i, p] = y[a, i, p] / total


@tl.kernel
def nearest(x: tl.f32[n, d], c: tl.f32[m, d], label: tl.out[tl.i64[n]]):
    for i in range(n):
        distance = tl.alloc(tl.f32[m])
        for j in range(m):
            total = tl.f32(0)
            for p in tl.reduce(d):
                total += (x[i, p] - c[j, p]) * (x[i, p] - c[j, p])
            distance[j] = total
        best = tl.f32(1e30)
        at = tl.i64(0)
        for j in tl.reduce(m):
            best, at = tl.argmin((best, at), (distance[j], j))
        label[i] = at


@pytest.mark.parametrize("kernel", [attention, nearest], ids=lambda kernel: kernel.name)
def test_rows_by_blocks_mean_what_is_written(kernel: tl.Kernel) -> None:
    with small_tiles(), effort(Effort.NONE):
        blocked = tl.compile(kernel.ir, target=tl.Target.host(workers=2))
        steps = blocked.schedule.steps
        assert any(isinstance(step, Expand) for step in steps)
        assert any(isinstance(step, Precompute) for step in steps) is (kernel is attention)
        lowered = tl.compile(blocked.lowered, schedule=None)
        for numbers in ((1, 1, 1, 1), (4, 5, 3, 2), (11, 7, 9, 1), (9, 20, 16, 2)):
            sizes = dict(zip("nmdh", numbers, strict=True))
            inputs = [param for param in kernel.ir.params if param.name not in ("y", "label")]
            shapes = [[sizes[str(extent)] for extent in param.shape] for param in inputs]
            given = [np.random.default_rng(7).integers(-2, 3, shape).astype("f") for shape in shapes]
            np.testing.assert_allclose(blocked(*given), kernel.interpret(*given), 1e-5, 1e-6)
            np.testing.assert_array_equal(blocked(*given), lowered.interpret(*given))


def test_rows_that_share_nothing_are_left_alone() -> None:
    @tl.kernel
    def softmax(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
        for i in range(n):
            kept = tl.alloc(tl.f32[m])
            for j in range(m):
                kept[j] = tl.exp(x[i, j])
            total = tl.f32(0)
            for j in tl.reduce(m):
                total += kept[j]
            for j in range(m):
                y[i, j] = kept[j] / total

    @tl.kernel
    def in_turn(x: tl.f32[n, d], c: tl.f32[m, d], y: tl.f32[n, d]):
        for i in range(1, n):
            kept = tl.alloc(tl.f32[m])
            for j in range(m):
                kept[j] = 0
                for p in tl.reduce(d):
                    kept[j] += y[i - 1, p] * c[j, p]
            for p in range(d):
                y[i, p] = kept[0] + x[i, p]

    for kernel in (softmax, in_turn):
        assert not any(isinstance(step, Expand) for step in kernel.schedule.steps)


def test_windows_of_what_a_row_has_for_itself_are_no_products() -> None:
    @tl.kernel(allow="contract")
    def smoothed(x: tl.f32[n + 4, m + 4], f: tl.f32[5], y: tl.f32[n, m]):
        for i in range(n):
            row = tl.alloc(tl.f32[m + 4])
            for j in range(m + 4):
                total = tl.f32(0)
                for u in tl.reduce(5):
                    total += f[u] * x[i + u, j]
                row[j] = total
            for j in range(m):
                total = tl.f32(0)
                for u in tl.reduce(5):
                    total += f[u] * row[j + u]
                y[i, j] = total

    assert not any(isinstance(step, Expand) for step in smoothed.schedule.steps)
