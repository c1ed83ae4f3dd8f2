"""Windows in loops that go by vectors: their taps are written out, and four rows of them share what they load."""

from __future__ import annotations

import numpy as np

import tirlite as tl

c, h, w = tl.dims("c h w")


@tl.kernel
def depthwise(x: tl.f32[c, h + 2, w + 2], f: tl.f32[c, 3, 3], y: tl.out[tl.f32[c, h, w]]):
    for p in range(c):
        for i in range(h):
            for j in range(w):
                total = tl.f32(0)
                for u in tl.reduce(3):
                    for v in tl.reduce(3):
                        total += f[p, u, v] * x[p, i + u, j + v]
                y[p, i, j] = total


@tl.kernel
def dilated(x: tl.u8[2 * h + 5, w + 6], y: tl.out[tl.u8[h, w]]):
    for i in range(h):
        for j in range(w):
            least = tl.u8(255)
            for u in range(3):
                for v in range(3):
                    least = min(least, x[2 * i + 2 * u, j + 3 * v])
            y[i, j] = least


def test_rows_of_windows_share_what_they_load() -> None:
    text = str(tl.compile(depthwise, target=tl.Target("x86-64-v3")).lowered)
    assert "for i in range(0, h // 4 * 4, 4):" in text
    assert "for u in" not in text.split("else:")[0]
    # Row i + 2 is the third one for the first row of windows, the first one for the third.
    assert text.split("else:")[0].count("x[p, i + 2, tl.ramp(first + 1, 1, 8)]") == 3


def test_windows_of_all_sizes_give_the_bits_of_what_was_lowered() -> None:
    rng = np.random.default_rng(0)
    for rows, columns in ((0, 3), (1, 1), (3, 15), (4, 16), (5, 33), (9, 70)):
        x = rng.normal(size=(2, rows + 2, columns + 2)).astype("f")
        f = rng.normal(size=(2, 3, 3)).astype("f")
        found = depthwise(x, f)
        np.testing.assert_array_equal(found, tl.compile(depthwise.lowered).interpret(x, f))
        taps = [(u, v) for u in range(3) for v in range(3)]
        wanted = sum(f[:, u, v, None, None] * x[:, u : u + rows, v : v + columns] for u, v in taps)
        np.testing.assert_allclose(found, wanted, atol=1e-5)
        bytes_ = rng.integers(0, 256, (2 * rows + 5, columns + 6), dtype=np.uint8)
        apart = [bytes_[2 * u : 2 * u + 2 * rows : 2, 3 * v : 3 * v + columns] for u, v in taps]
        np.testing.assert_array_equal(dilated(bytes_), np.min(apart, axis=0))


@tl.kernel
def few_terms(x: tl.f32[h, 16], f: tl.f32[16, w], y: tl.out[tl.f32[h, w]]):
    for i in range(h):
        for j in range(w):
            total = tl.f32(0)
            for u in tl.reduce(16):
                total += x[i, u] * f[u, j]
            y[i, j] = total


def test_terms_that_share_nothing_stay_a_loop() -> None:
    """Of 16 terms at once, registers hold no sums of four rows."""
    assert "for u in range(16):" in str(tl.compile(few_terms.ir, schedule=(tl.passes.VectorizeLoops(),)).lowered)
