"""Cases of images looked at between their elements, by loops over single elements."""

from __future__ import annotations

from itertools import product
from math import ceil, floor

import numpy as np
from operator_cases.case import Case

import tirlite as tl
from tirlite.kernels.operators.sampling import REACH, grid_sample, roi_align


def folded(at: float, extent: int, padding: str, low: float, high: float) -> float:
    """A place outside at the border, or mirrored until it lies inside."""
    if padding == "border":
        return min(max(at, 0), extent - 1)
    while padding == "reflection" and not low <= at <= high:
        at = 2 * low - at if at < low else 2 * high - at
    return at


def cubic(distance: float) -> float:
    d, a = abs(distance), -0.75
    return ((a + 2) * d - (a + 3)) * d * d + 1 if d <= 1 else ((a * d - 5 * a) * d + 8 * a) * d - 4 * a


def ways(extent: int, number: float, mode: str, padding: str, align_corners: bool) -> list[tuple[int, float]]:
    low, high = (0, extent - 1) if align_corners else (-0.5, extent - 0.5)
    at = (number + 1) / 2 * (extent - 1) if align_corners else ((number + 1) * extent - 1) / 2
    first = round(at) if mode == "nearest" else floor(at)
    found = []
    for p in range(REACH[mode]):
        index = first + p - (REACH[mode] - 1) // 2
        weight = {"nearest": 1.0, "linear": 1 - abs(at - index), "cubic": cubic(at - index)}[mode]
        index = int(folded(index, extent, padding, low, high))
        found.append((index, weight if 0 <= index < extent else 0))
    return found


def sampled(x: np.ndarray, grid: np.ndarray, **how: object) -> np.ndarray:
    y = np.zeros((*x.shape[:2], *grid.shape[1:-1]), np.float64)
    for n, *place in product(*map(range, grid.shape[:-1])):
        numbers = grid[n, *place][::-1].astype(np.float64)
        for corner in product(*(ways(e, number, **how) for e, number in zip(x.shape[2:], numbers, strict=True))):
            weight = np.prod([each for _, each in corner])
            if weight:
                y[n, :, *place] += weight * x[n, :, *(index for index, _ in corner)]
    return y.astype(x.dtype)


def grid_case(x: tuple, g: tuple, mode: str, padding: str, *, align_corners: bool = False, free=None) -> Case:
    how = {"mode": mode, "padding": padding, "align_corners": align_corners}
    batch = tl.dim("n") if free else x[0]
    types = (tl.f32[(batch, *x[1:])], tl.f32[(batch, *g[1:])], tl.f32[(batch, x[1], *g[1:-1])])

    def inputs(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        return rng.standard_normal(x, np.float32), (rng.random(g, np.float32) * 3 - 1.5)

    name = f"grid_sample-{mode}-{padding}-{len(g) - 2}"
    return Case(name, lambda: grid_sample(*types, **how), inputs, lambda x, g: sampled(x, g, **how), 1e-5)


def at(image: np.ndarray, v: float, h: float) -> list[float]:
    """The four terms of an element between others."""
    height, width = image.shape
    if v < -1 or v > height or h < -1 or h > width:
        return [0.0] * 4
    v, h = min(max(v, 0), height - 1), min(max(h, 0), width - 1)
    rows = ((floor(v), 1 - v % 1), (min(floor(v) + 1, height - 1), v % 1))
    columns = ((floor(h), 1 - h % 1), (min(floor(h) + 1, width - 1), h % 1))
    return [a * b * image[i, j] for i, a in rows for j, b in columns]


def aligned(x: np.ndarray, regions: np.ndarray, batch: np.ndarray, bins: tuple, ratio: int, greatest: bool):
    y = np.zeros((len(regions), x.shape[1], *bins), np.float64)
    for r, c, i, j in product(*map(range, y.shape)):
        left, top, right, bottom = regions[r].astype(np.float64) * 0.5 - 0.5
        tall, wide = (bottom - top) / bins[0], (right - left) / bins[1]
        counts = [ratio or ceil(tall), ratio or ceil(wide)]
        samples = [
            at(x[batch[r], c], top + (i + (p + 0.5) / counts[0]) * tall, left + (j + (q + 0.5) / counts[1]) * wide)
            for p, q in product(*map(range, counts))
        ]
        y[r, c, i, j] = np.max(samples) if greatest else np.sum(samples) / len(samples)
    return y.astype(x.dtype)


def roi_case(name: str, *, ratio: int = 0, greatest: bool = False) -> Case:
    types = (tl.f32[2, 2, 6, 7], tl.f32[3, 4], tl.i64[3], tl.f32[3, 2, 2, 3])
    attrs = {"scale": 0.5, "ratio": ratio, "greatest": greatest}

    def inputs(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        corners = np.sort(rng.random((3, 2, 2), np.float32) * 13, 1).reshape(3, 4)
        return rng.standard_normal((2, 2, 6, 7), np.float32), corners, rng.integers(0, 2, 3)

    def reference(x: np.ndarray, regions: np.ndarray, batch: np.ndarray) -> np.ndarray:
        return aligned(x, regions, batch, (2, 3), ratio, greatest)

    return Case(f"roi_align-{name}", lambda: roi_align(*types, **attrs), inputs, reference, 1e-5)


CASES = (
    grid_case((2, 3, 4, 5), (2, 3, 2, 2), "linear", "zeros", free=True),
    grid_case((1, 2, 4, 5), (1, 3, 4, 2), "cubic", "reflection"),
    grid_case((1, 2, 4, 5), (1, 3, 4, 2), "cubic", "zeros", align_corners=True),
    grid_case((1, 2, 4, 5), (1, 3, 4, 2), "nearest", "border"),
    grid_case((2, 3, 4, 5), (2, 13, 11, 2), "linear", "border"),
    grid_case((1, 1, 3, 4, 2), (1, 2, 2, 2, 3), "linear", "reflection", align_corners=True),
    roi_case("mean"),
    roi_case("samples", ratio=2),
    roi_case("greatest", ratio=1, greatest=True),
)
