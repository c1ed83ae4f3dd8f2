"""What lanes load from where they computed is the same by permutations of what lies near, and one by one."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite.target.processor import HOST, processor_called

RESIZE = """
n, m = tl.dims("n m")

@tl.kernel
def resize(x: tl.{0}[2, n], scale: tl.{1}, start: tl.{1}, y: tl.{0}[2, m], z: tl.{1}[2, m]):
    for i in range(2):
        for j in range(m):
            place = min(max(tl.{1}(j) * scale + start, 0), tl.{1}(n - 1))
            a = tl.i64(place)
            b = min(a + 1, n - 1)
            y[i, j] = x[i, a] - x[i, b]
            z[i, j] = place - tl.{1}(a)
"""


@pytest.mark.parametrize("dtype", ["u8", "i16", "f32", "f64", "i64"])
@pytest.mark.parametrize("places", ["f32", "f64"])
def test_places_far_and_near(dtype: str, places: str) -> None:
    func = tl.parse(RESIZE.format(dtype, places))
    kernel, plain = tl.compile(func), tl.compile(func, schedule=None)
    weights = {"f32": np.float32, "f64": np.float64}[places]
    rng = np.random.default_rng(5)
    for n in (1, 5, 16, 31, 32, 33, 200):
        x = rng.integers(0, 100, (2, n)).astype(kernel.ir.params[0].dtype.numpy)  # type: ignore[union-attr]
        for m in (1, 7, 16, 17, 33, 100):
            for scale, start in ((0.7, 0.0), (n / m, 0.25), (3.7, 1.0), (-0.9, n - 1.0), (np.nan, 0.0)):
                found, wanted = ([np.zeros((2, m), x.dtype), np.zeros((2, m), weights)] for _ in range(2))
                kernel(x, scale, start, *found)
                plain(x, scale, start, *wanted)
                np.testing.assert_array_equal(found[0], wanted[0])
                np.testing.assert_array_equal(found[1], wanted[1])
    if processor_called(HOST).permutes:
        assert "llvm.x86.avx512.vpermi2var" in kernel.llvm or "llvm.x86.avx512.permvar" in kernel.llvm


def test_what_is_lowered_means_the_same() -> None:
    kernel = tl.compile(tl.parse(RESIZE.format("f32", "f32")))
    x = np.arange(80, dtype=np.float32).reshape(2, 40)
    found, wanted = np.zeros((2, 2, 2, 35), np.float32)
    kernel(x, 1.1, 0.4, *found)
    tl.compile(kernel.lowered).interpret(x, 1.1, 0.4, *wanted)
    assert np.array_equal(found, wanted)
