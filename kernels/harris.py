"""Harris corners: how much of a corner each pixel is, by what the gradients around it do.

Source: C. Harris and M. Stephens, A combined corner and edge detector, 1988.
"""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.kernels.case import Case

n, m = tl.dims("n m")
# What a straight edge costs, against what a corner brings.
EDGE = 0.04


@tl.kernel
def harris(image: tl.u8[n, m], response: tl.out[tl.f32[n, m]]):
    """Positive at corners, negative at edges, near 0 where nothing is; 0 within two pixels of the frame."""
    gray = tl.alloc(tl.f32[n, m])
    for i in tl.parallel(n):
        for j in range(m):
            gray[i, j] = tl.f32(image[i, j]) / 255
            response[i, j] = 0
    # Gradients, by Sobel's masks.
    dx = tl.alloc(tl.f32[n, m])
    dy = tl.alloc(tl.f32[n, m])
    for i in tl.parallel(1, n - 1):
        for j in range(1, m - 1):
            left = gray[i - 1, j - 1] + 2 * gray[i, j - 1] + gray[i + 1, j - 1]
            right = gray[i - 1, j + 1] + 2 * gray[i, j + 1] + gray[i + 1, j + 1]
            above = gray[i - 1, j - 1] + 2 * gray[i - 1, j] + gray[i - 1, j + 1]
            below = gray[i + 1, j - 1] + 2 * gray[i + 1, j] + gray[i + 1, j + 1]
            dx[i, j] = right - left
            dy[i, j] = below - above
    # Their products, and the sums of these over 3 x 3 pixels: the structure tensor.
    xx = tl.alloc(tl.f32[n, m])
    yy = tl.alloc(tl.f32[n, m])
    xy = tl.alloc(tl.f32[n, m])
    for i in tl.parallel(1, n - 1):
        for j in range(1, m - 1):
            xx[i, j] = dx[i, j] * dx[i, j]
            yy[i, j] = dy[i, j] * dy[i, j]
            xy[i, j] = dx[i, j] * dy[i, j]
    sxx = tl.alloc(tl.f32[n, m])
    for i in tl.parallel(2, n - 2):
        for j in range(2, m - 2):
            above = xx[i - 1, j - 1] + xx[i - 1, j] + xx[i - 1, j + 1]
            beside = xx[i, j - 1] + xx[i, j] + xx[i, j + 1]
            below = xx[i + 1, j - 1] + xx[i + 1, j] + xx[i + 1, j + 1]
            sxx[i, j] = above + beside + below
    syy = tl.alloc(tl.f32[n, m])
    for i in tl.parallel(2, n - 2):
        for j in range(2, m - 2):
            above = yy[i - 1, j - 1] + yy[i - 1, j] + yy[i - 1, j + 1]
            beside = yy[i, j - 1] + yy[i, j] + yy[i, j + 1]
            below = yy[i + 1, j - 1] + yy[i + 1, j] + yy[i + 1, j + 1]
            syy[i, j] = above + beside + below
    sxy = tl.alloc(tl.f32[n, m])
    for i in tl.parallel(2, n - 2):
        for j in range(2, m - 2):
            above = xy[i - 1, j - 1] + xy[i - 1, j] + xy[i - 1, j + 1]
            beside = xy[i, j - 1] + xy[i, j] + xy[i, j + 1]
            below = xy[i + 1, j - 1] + xy[i + 1, j] + xy[i + 1, j + 1]
            sxy[i, j] = above + beside + below
    # Corners have two large eigenvalues: the determinant is their product, the trace their sum.
    det = tl.alloc(tl.f32[n, m])
    trace = tl.alloc(tl.f32[n, m])
    for i in tl.parallel(2, n - 2):
        for j in range(2, m - 2):
            det[i, j] = sxx[i, j] * syy[i, j] - sxy[i, j] * sxy[i, j]
            trace[i, j] = sxx[i, j] + syy[i, j]
    for i in tl.parallel(2, n - 2):
        for j in range(2, m - 2):
            response[i, j] = det[i, j] - EDGE * trace[i, j] * trace[i, j]


def reference(image: np.ndarray) -> np.ndarray:
    """The same in NumPy, as one would write it there: whole arrays, and slices of them."""
    gray = image.astype(np.float32) / 255
    columns = gray[:-2] + 2 * gray[1:-1] + gray[2:]
    rows = gray[:, :-2] + 2 * gray[:, 1:-1] + gray[:, 2:]
    dx = columns[:, 2:] - columns[:, :-2]
    dy = rows[2:] - rows[:-2]
    sxx, syy, sxy = _sums(dx * dx), _sums(dy * dy), _sums(dx * dy)
    trace = sxx + syy
    response = np.zeros(image.shape, np.float32)
    response[2:-2, 2:-2] = sxx * syy - sxy * sxy - EDGE * trace * trace
    return response


def _sums(a: np.ndarray) -> np.ndarray:
    rows = a[:, :-2] + a[:, 1:-1] + a[:, 2:]
    return rows[:-2] + rows[1:-1] + rows[2:]


def inputs(rng: np.random.Generator, n: int, m: int) -> tuple[object, ...]:
    return (rng.integers(0, 256, (n, m), np.uint8),)


KERNELS = (harris,)
CASES = (Case(harris, reference, inputs, ((0, 6), (1, 1), (3, 8), (5, 5), (7, 9))),)
