"""Lanes that lie few elements apart are loaded by whole vectors that stay between the first and the last one."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl

n = tl.dim("n")
NAMES = {"u8": "u1", "i16": "i2", "f32": "f4", "f64": "f8"}


@pytest.mark.parametrize("dtype", NAMES)
def test_lanes_apart(dtype: str) -> None:
    stores = "\n".join(
        f"    y[{row}, tl.ramp(0, 1, {lanes})] = x[tl.ramp({300 - stride * (lanes - 1) - 1}, {stride}, {lanes})]"
        for row, (stride, lanes) in enumerate((stride, lanes) for stride in (2, 3, 4) for lanes in (2, 4, 8, 16, 64))
    )
    kernel = tl.compile(
        tl.parse(f"@tl.kernel\ndef f(x: tl.{dtype}[300], y: tl.{dtype}[15, 64]):\n{stores}\n"), schedule=None
    )
    x = (
        np.random.default_rng(0)
        .integers(0, 100, 300)
        .astype({"u8": "u1", "i16": "i2", "f32": "f4", "f64": "f8"}[dtype])
    )
    found, wanted = np.zeros((2, 15, 64), x.dtype)
    kernel(x, found)
    kernel.interpret(x, wanted)
    np.testing.assert_array_equal(found, wanted)


@tl.kernel
def pooled(x: tl.u8[2 * n + 1, 3 * n], y: tl.out[tl.u8[n, n]]):
    for i in range(n):
        for j in range(n):
            top = tl.u8(0)
            for u in tl.reduce(3):
                for v in tl.reduce(3):
                    top = max(top, x[2 * i + u, 3 * j + v])
            y[i, j] = top


def test_windows_that_step() -> None:
    assert "tl.ramp(3 * first" in str(pooled.lowered)
    for size in (1, 3, 16, 31, 70):
        x = np.random.default_rng(size).integers(0, 256, (2 * size + 1, 3 * size), dtype=np.uint8)
        taps = [x[u : u + 2 * size : 2, v : v + 3 * size : 3] for u in range(3) for v in range(3)]
        np.testing.assert_array_equal(pooled(x), np.max(taps, axis=0))
