"""The meanings of operators that pick or put elements by index, or order them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tirlite.graph.ops.indexing import BatchDims, OneHot, Scatter, ScatterNd, TopK
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


INDEXING: dict[str, Meaning] = {
    "gather_elements": _gather_elements,
    "gather_nd": _gather_nd,
    "one_hot": _one_hot,
    "scatter_elements": _scatter_elements,
    "scatter_nd": _scatter_nd,
    "topk": _topk,
}
