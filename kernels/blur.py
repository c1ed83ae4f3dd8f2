"""The mean of the 3 x 3 pixels around each pixel, along rows and then along columns; edges are repeated outwards."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.kernels.case import Case

n, m = tl.dims("n m")


@tl.kernel
def blur(image: tl.f32[n, m], blurred: tl.out[tl.f32[n, m]]):
    """The mean in float32."""
    rows = tl.alloc(tl.f32[n, m])
    columns = tl.alloc(tl.f32[n, m])
    for i in tl.parallel(n):
        for j in range(m):
            rows[i, j] = image[i, max(j - 1, 0)] + image[i, j] + image[i, min(j + 1, m - 1)]
    for i in tl.parallel(n):
        for j in range(m):
            columns[i, j] = rows[max(i - 1, 0), j] + rows[i, j] + rows[min(i + 1, n - 1), j]
    for i in tl.parallel(n):
        for j in range(m):
            blurred[i, j] = columns[i, j] / 9


@tl.kernel
def blur_u8(image: tl.u8[n, m], blurred: tl.out[tl.u8[n, m]]):
    """The mean of bytes, rounded down. The sum of nine bytes has room in 16 bits."""
    wide = tl.alloc(tl.u16[n, m])
    rows = tl.alloc(tl.u16[n, m])
    columns = tl.alloc(tl.u16[n, m])
    for i in tl.parallel(n):
        for j in range(m):
            wide[i, j] = image[i, j]
    for i in tl.parallel(n):
        for j in range(m):
            rows[i, j] = wide[i, max(j - 1, 0)] + wide[i, j] + wide[i, min(j + 1, m - 1)]
    for i in tl.parallel(n):
        for j in range(m):
            columns[i, j] = rows[max(i - 1, 0), j] + rows[i, j] + rows[min(i + 1, n - 1), j]
    for i in tl.parallel(n):
        for j in range(m):
            blurred[i, j] = columns[i, j] // 9


def blur_reference(image: np.ndarray) -> np.ndarray:
    return _sums(image) / 9


def blur_u8_reference(image: np.ndarray) -> np.ndarray:
    return (_sums(image.astype(np.uint16)) // 9).astype(np.uint8)


def _sums(image: np.ndarray) -> np.ndarray:
    if not image.size:
        return image.copy()
    padded = np.pad(image, 1, mode="edge")
    rows = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
    return rows[:-2] + rows[1:-1] + rows[2:]


def blur_inputs(rng: np.random.Generator, n: int, m: int) -> tuple[object, ...]:
    return (rng.random((n, m), np.float32),)


def blur_u8_inputs(rng: np.random.Generator, n: int, m: int) -> tuple[object, ...]:
    return (rng.integers(0, 256, (n, m), np.uint8),)


KERNELS = (blur, blur_u8)
SIZES = ((0, 5), (5, 0), (1, 1), (2, 3), (8, 11))
CASES = (
    Case(blur, blur_reference, blur_inputs, SIZES),
    Case(blur_u8, blur_u8_reference, blur_u8_inputs, SIZES),
)
