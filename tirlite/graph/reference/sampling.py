"""The meanings of operators that look at images between their elements."""

from __future__ import annotations

from itertools import product

import numpy as np

from tirlite.graph.ops.sampling import GridSample, RoiAlign
from tirlite.graph.reference.meaning import Array, Meaning


def _grid_sample(attrs: GridSample, x: Array, grid: Array) -> Array:
    axes = x.ndim - 2
    ways = [_ways(attrs, x.shape[2 + k], grid[..., axes - 1 - k].astype(x.dtype)) for k in range(axes)]
    elements = np.moveaxis(x, 1, -1)
    batch = np.arange(x.shape[0]).reshape(-1, *(1,) * axes)
    total = np.zeros((*grid.shape[:-1], x.shape[1]), x.dtype)
    for corner in product(*ways):
        inside = np.logical_and.reduce([at >= 0 for at, _ in corner])
        weight = np.where(inside, np.prod([each for _, each in corner], axis=0), 0)
        total += weight[..., None].astype(x.dtype) * elements[(batch, *(np.maximum(at, 0) for at, _ in corner))]
    return np.moveaxis(total, -1, 1)


def _ways(attrs: GridSample, extent: int, place: Array) -> list[tuple[Array, Array]]:
    """Indices along an axis, -1 for what is zero, with their weights."""
    last = extent - 1
    low, high = (0.0, last) if attrs.align_corners else (-0.5, last + 0.5)
    kind = place.dtype.type
    at = (place + 1) / 2 * kind(last) if attrs.align_corners else ((place + 1) * kind(extent) - 1) / 2
    first = np.rint(at) if attrs.mode == "nearest" else np.floor(at)
    weights = _weights(attrs.mode, at - first)
    found = []
    for number, weight in enumerate(weights):
        index = _folded(attrs.padding, first + (number - (len(weights) - 1) // 2), last, low, high)
        inside = (index >= 0) & (index <= last)
        found.append((np.where(inside, index, -1).astype(np.int64), weight))
    return found


def _folded(padding: str, at: Array, last: int, low: float, high: float) -> Array:
    """Places outside brought to the border, or mirrored at it."""
    if padding == "border":
        return np.clip(at, 0, last)
    if padding == "reflection":
        if high <= low:
            return np.full_like(at, low)
        turn = np.abs(at - low) % (2 * (high - low))
        return np.asarray(low + np.minimum(turn, 2 * (high - low) - turn), at.dtype)
    return at


def _weights(mode: str, share: Array) -> list[Array]:
    if mode == "nearest":
        return [np.ones_like(share)]
    if mode == "linear":
        return [1 - share, share]
    a, far, rest = -0.75, share + 1, 1 - share
    first = ((a * far - 5 * a) * far + 8 * a) * far - 4 * a
    second, third = (((a + 2) * each - (a + 3)) * each * each + 1 for each in (share, rest))
    return [first, second, third, 1 - first - second - third]


def _roi_align(attrs: RoiAlign, x: Array, regions: Array, batch: Array) -> Array:
    y = np.zeros((len(regions), x.shape[1], attrs.height, attrs.width), x.dtype)
    shift = x.dtype.type(0.5 if attrs.half_pixel else 0)
    for number, (region, image) in enumerate(zip(regions, batch, strict=True)):
        left, top, right, bottom = region * x.dtype.type(attrs.scale) - shift
        wide, tall = right - left, bottom - top
        if not attrs.half_pixel:
            wide, tall = max(wide, x.dtype.type(1)), max(tall, x.dtype.type(1))
        rows, columns = _places(top, tall, attrs.height, attrs.ratio), _places(left, wide, attrs.width, attrs.ratio)
        for i, j in product(range(attrs.height), range(attrs.width)):
            samples = [_sample(x[image], v, h, greatest=attrs.greatest) for v in rows[i] for h in columns[j]]
            if attrs.greatest:
                y[number, :, i, j] = np.max(samples, axis=0) if samples else 0
            else:
                y[number, :, i, j] = np.sum(samples, axis=0) / max(len(samples), 1)
    return y


def _places(start: float, length: float, bins: int, ratio: int) -> list[list[float]]:
    """Where the samples of each bin lie along an axis."""
    size = length / bins
    count = ratio or int(np.ceil(size))
    return [[start + number * size + (at + 0.5) * size / count for at in range(count)] for number in range(bins)]


def _sample(image: Array, v: float, h: float, *, greatest: bool) -> Array:
    """All channels at a place: what is more than an element outside is 0, what is less counts as the edge."""
    _, height, width = image.shape
    if v < -1 or v > height or h < -1 or h > width:
        return np.zeros(image.shape[0], image.dtype)
    v, h = min(max(v, 0), height - 1), min(max(h, 0), width - 1)
    rows = [(int(v), 1 - (v - int(v))), (min(int(v) + 1, height - 1), v - int(v))]
    columns = [(int(h), 1 - (h - int(h))), (min(int(h) + 1, width - 1), h - int(h))]
    parts = [a * b * image[:, i, j] for i, a in rows for j, b in columns]
    return np.asarray(np.max(parts, axis=0) if greatest else np.sum(parts, axis=0), image.dtype)


SAMPLING: dict[str, Meaning] = {"grid_sample": _grid_sample, "roi_align": _roi_align}
