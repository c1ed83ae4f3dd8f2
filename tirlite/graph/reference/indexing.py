"""The meanings of operators that pick or put elements by index, or order them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tirlite.graph.op import Attrs
from tirlite.graph.ops.creation import Count
from tirlite.graph.ops.indexing import BatchDims, OneHot, Scatter, ScatterNd, Suppression, TopK
from tirlite.graph.ops.normalization import Axis
from tirlite.graph.reference.meaning import Array, Meaning

_UFUNCS: dict[str, Any] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _along(indices: Array, axis: int) -> tuple[Any, ...]:
    where: list[Any] = list(np.indices(indices.shape, sparse=True))
    where[axis] = indices
    return tuple(where)


def _gather_elements(attrs: Axis, x: Array, indices: Array) -> Array:
    return np.asarray(x[_along(indices, attrs.axis % x.ndim)])


def _gather_nd(attrs: BatchDims, x: Array, indices: Array) -> Array:
    batch = attrs.batch_dims
    count = int(np.prod(x.shape[:batch]))
    rows, places = x.reshape(count, *x.shape[batch:]), indices.reshape(count, *indices.shape[batch:])
    made = [row[tuple(np.moveaxis(place, -1, 0))] for row, place in zip(rows, places, strict=True)]
    rest = indices.shape[batch:-1] + x.shape[batch + indices.shape[-1] :]
    return np.asarray(made, x.dtype).reshape((*x.shape[:batch], *rest))


def _scattered(x: Array, where: tuple[Any, ...], updates: Array, reduction: str) -> Array:
    y = x.copy()
    if reduction == "none":
        y[where] = updates
    else:
        _UFUNCS[reduction].at(y, where, updates)
    return y


def _scatter_elements(attrs: Scatter, x: Array, indices: Array, updates: Array) -> Array:
    return _scattered(x, _along(indices, attrs.axis % x.ndim), updates, attrs.reduction)


def _scatter_nd(attrs: ScatterNd, x: Array, indices: Array, updates: Array) -> Array:
    return _scattered(x, tuple(np.moveaxis(indices, -1, 0)), updates, attrs.reduction)


def _one_hot(attrs: OneHot, indices: Array, values: Array) -> Array:
    assert isinstance(attrs.depth, int)
    axis = attrs.axis % (indices.ndim + 1)
    places = np.where(indices < 0, indices + attrs.depth, indices)
    classes = np.arange(attrs.depth).reshape(-1, *(1,) * (indices.ndim - axis))
    return np.asarray(np.where(np.expand_dims(places, axis) == classes, values[1], values[0]))


def _topk(attrs: TopK, x: Array) -> tuple[Array, Array]:
    """nan counts as the first of all; equals come by index."""
    assert isinstance(attrs.count, int)
    axis = attrs.axis % x.ndim
    # Reversed twice, so that a stable sort keeps the order of equals.
    ordered = np.argsort(x, axis, kind="stable")
    if attrs.largest:
        flipped = np.argsort(np.flip(x, axis), axis, kind="stable")
        ordered = np.flip(x.shape[axis] - 1 - flipped, axis)
    elif x.dtype.kind == "f":
        first = np.argsort(~np.isnan(np.take_along_axis(x, ordered, axis)), axis, kind="stable")
        ordered = np.take_along_axis(ordered, first, axis)
    chosen = np.take(ordered, np.arange(attrs.count), axis)
    return np.take_along_axis(x, chosen, axis), chosen.astype(np.int64)


def _nonzero(attrs: Count, x: Array) -> Array:
    assert isinstance(attrs.count, int)
    found = np.array(np.nonzero(np.atleast_1d(x)), np.int64)[: x.ndim]
    if found.shape[1] != attrs.count and x.ndim:
        raise ValueError(f"{found.shape[1]} elements are not zero, and {attrs.count} were said to be")
    return found if x.ndim else np.zeros((0, attrs.count), np.int64)


def _sort_rows(attrs: Attrs, x: Array) -> tuple[Array, Array]:
    order = np.lexsort(x.T[::-1]) if x.shape[1] else np.arange(len(x))
    rows = x[order]
    differ = (rows[1:] != rows[:-1]) & ~((rows[1:] != rows[1:]) & (rows[:-1] != rows[:-1]))
    fresh = np.ones(len(x), bool)
    fresh[1:] = differ.any(1)
    return order.astype(np.int64), fresh


def _non_max_suppression(
    attrs: Suppression, boxes: Array, scores: Array, most: Array, overlap: Array, least: Array
) -> tuple[Array, Array]:
    assert isinstance(attrs.count, int)
    chosen = []
    for b, c in np.ndindex(*scores.shape[:2]):
        alive = scores[b, c] > least if attrs.scored else np.ones(scores.shape[2], bool)
        for _ in range(min(int(most), scores.shape[2])):
            if not alive.any():
                break
            best = int(np.flatnonzero(alive)[np.argmax(scores[b, c][alive])])
            chosen.append((b, c, best))
            alive[best] = False
            alive &= ~_overlaps(boxes[b], boxes[b, best], overlap, center=attrs.center)
    found = np.zeros((attrs.count, 3), np.int64)
    found[: len(chosen)] = np.array(chosen, np.int64).reshape(-1, 3)
    return found, np.array(len(chosen), np.int64)


def _overlaps(boxes: Array, one: Array, limit: Array, *, center: bool) -> Array:
    """Which boxes share more of their area with one than the limit."""
    (low, high), (first, last) = (_corners(each, center=center) for each in (boxes, one))
    shared = np.minimum(high, last) - np.maximum(low, first)
    common = shared[:, 0] * shared[:, 1]
    area, other = np.prod(high - low, -1), np.prod(last - first, -1)
    both = area + other - common
    has_area = (shared > 0).all(1) & (common > 0) & (area > 0) & (other > 0) & (both > 0)
    return np.asarray(has_area & (common / both > limit))


def _corners(boxes: Array, *, center: bool) -> tuple[Array, Array]:
    a, b = boxes[..., :2], boxes[..., 2:]
    if center:
        half = b / np.float32(2)
        return a - half, a + half
    return np.minimum(a, b), np.maximum(a, b)


INDEXING: dict[str, Meaning] = {
    "gather_elements": _gather_elements,
    "gather_nd": _gather_nd,
    "non_max_suppression": _non_max_suppression,
    "nonzero": _nonzero,
    "one_hot": _one_hot,
    "scatter_elements": _scatter_elements,
    "scatter_nd": _scatter_nd,
    "sort_rows": _sort_rows,
    "topk": _topk,
}
