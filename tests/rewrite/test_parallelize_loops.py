"""ParallelizeLoops, before and after: the outermost independent loops go to workers."""

from __future__ import annotations

from textwrap import indent

import numpy as np
import pytest
from rewrite.before_after import BeforeAfter

import tirlite as tl
from tirlite.rewrite import ParallelizeLoops

n, m = tl.dims("n m")
PASS = BeforeAfter((ParallelizeLoops(),))


def test_the_outermost_independent_loops() -> None:
    PASS.expect(
        """
        for t in range(3):
            for i in range(n):
                for j in range(m):
                    y[i, j] = y[i, j] * x[i, j]
        """,
        """
        for t in range(3):
            for i in tl.parallel(n):
                for j in range(m):
                    y[i, j] = y[i, j] * x[i, j]
        """,
    )


@pytest.mark.parametrize(
    "store",
    [
        pytest.param("y[n - 1 - i, 0] = tl.exp(x[i, 0])", id="backwards"),
        pytest.param("y[2 * i + 1, 0] = tl.exp(y[2 * i, 0])", id="odd rows are written, even ones read"),
    ],
)
def test_what_dependences_show_to_be_independent(store: str) -> None:
    PASS.expect(*(f"for i in {kind}(n // 2):\n    {store}" for kind in ("range", "tl.parallel")))


def test_searches_beside_each_other() -> None:
    search = """
        for i in {}(n):
            at = tl.alloc(tl.i64[()])
            at[()] = 0
            while at[()] < m:
                at[()] = tl.select(x[i, 0] < 0, m, at[()] + 1)
            y[i, 0] = tl.f32(at[()])
        """
    PASS.expect(search.format("range"), search.format("tl.parallel"))


@pytest.mark.parametrize(
    "loop",
    [
        pytest.param("for j in range(m):\n    y[i, j] = x[i, j] + 1", id="little to do"),
        pytest.param("for j in range(1, m):\n    y[i, j] = tl.exp(y[i, j - 1])", id="the iteration before is read"),
        pytest.param("for j in range(m):\n    y[i, 0] = tl.exp(x[i, j])", id="one element for all"),
        pytest.param("for j in tl.reduce(m):\n    y[i, 0] += tl.exp(x[i, j])", id="a reduction"),
        pytest.param("t = tl.alloc(tl.f32[m])\nfor j in range(m):\n    t[j] = tl.exp(x[i, j])", id="a temporary"),
        pytest.param(
            "for j in range(m):\n    assert x[i, j] < 9\n    y[i, j] = tl.exp(x[i, j])", id="the first fault is told"
        ),
        pytest.param(
            "for j in range(m):\n    t = tl.alloc(tl.f32[n])\n    t[0] = x[i, j]\n    y[i, j] = tl.exp(t[0])",
            id="storage for each worker",
        ),
    ],
)
def test_others_stay_as_they_are(loop: str) -> None:
    PASS.expect_unchanged("for i in tl.unroll(n):\n" + indent(loop, "    "))


def test_workers_do_not_change_a_bit() -> None:
    @tl.kernel
    def rows(x: tl.f32[n, m], y: tl.out[tl.f32[n]], z: tl.out[tl.f32[n, m]]):
        for i in range(n):
            total = tl.f32(0)
            for j in tl.reduce(m):
                total += x[i, j]
            y[i] = total
            for j in range(m):
                z[i, j] = tl.exp(x[i, j]) / total

    x = np.random.default_rng(0).random((501, 130), np.float32)
    one, four = (tl.compile(rows, target=tl.Target.host(workers=workers))(x) for workers in (1, 4))
    for alone, together in zip(one, four, strict=True):
        np.testing.assert_array_equal(alone, together)
    assert "tl.parallel" in str(rows.lowered)
