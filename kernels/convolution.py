"""Two-dimensional convolution over channels, as neural networks have it: no padding, the filter not mirrored."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.kernels.case import Case

channels, filters, height, width, rows, columns = tl.dims("channels filters height width rows columns")


@tl.kernel
def convolution(
    image: tl.f32[channels, height, width],
    weights: tl.f32[filters, channels, rows, columns],
    y: tl.out[tl.f32[filters, height - rows + 1, width - columns + 1]],
):
    """y[f, i, j] = sum of image[c, i + p, j + q] * weights[f, c, p, q] over c, p and q."""
    for f in tl.parallel(filters):
        for i in range(height - rows + 1):
            for j in range(width - columns + 1):
                y[f, i, j] = 0
        for c in range(channels):
            for i in range(height - rows + 1):
                for p in range(rows):
                    for q in range(columns):
                        for j in range(width - columns + 1):
                            y[f, i, j] += image[c, i + p, j + q] * weights[f, c, p, q]


def reference(image: np.ndarray, weights: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(image, weights.shape[2:], axis=(1, 2))
    return np.einsum("cijpq,fcpq->fij", windows, weights)


def inputs(rng: np.random.Generator, c: int, f: int, h: int, w: int, p: int, q: int) -> tuple[object, ...]:
    return rng.standard_normal((c, h, w), np.float32), rng.standard_normal((f, c, p, q), np.float32)


KERNELS = (convolution,)
SIZES = ((1, 1, 1, 1, 1, 1), (2, 3, 6, 5, 3, 3), (3, 1, 4, 7, 4, 1), (0, 2, 3, 3, 2, 2), (1, 0, 3, 3, 2, 2))
CASES = (Case(convolution, reference, inputs, SIZES, tolerance=1e-5),)
