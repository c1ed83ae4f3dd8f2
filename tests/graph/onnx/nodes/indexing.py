"""Random nodes that pick or put elements by index, or order them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from graph.onnx.nodes.sample import NUMBERS, Draw, Sample

Maker = Callable[[Draw], Sample]
ANY = (*NUMBERS, "bool")


def _indices(d: Draw, shape: tuple[int, ...] | list[int], extent: int) -> np.ndarray:
    low = -extent if d.opset >= 11 else 0
    kind = np.int64 if d.chance(0.7) else np.int32
    return np.asarray(d.rng.integers(low, extent, tuple(shape)), kind)


def _gather(d: Draw) -> Sample:
    x = d.array(d.shape(1, 4, empty=0), d.dtype(ANY))
    axis = d.axis(x.ndim)
    return d.sample(
        "Gather", [x, _indices(d, d.shape(0, 2), x.shape[axis])], axis=axis, fixed=[1] if d.chance(0.3) else []
    )


def _gather_elements(d: Draw) -> Sample:
    d.opset = max(d.opset, 11)
    x = d.array(d.shape(1, 4, empty=0), d.dtype(ANY))
    axis = d.axis(x.ndim)
    shape = [d.between(1, extent) for extent in x.shape]
    shape[axis] = d.between(0, 5)
    return d.sample("GatherElements", [x, _indices(d, shape, x.shape[axis])], axis=axis)


def _places(d: Draw, x: np.ndarray, shape: tuple[int, ...], depth: int, skip: int = 0) -> np.ndarray:
    columns = [_indices(d, shape, x.shape[skip + place]).astype(np.int64) for place in range(depth)]
    return np.stack(columns, -1)


def _gather_nd(d: Draw) -> Sample:
    d.opset = max(d.opset, 11)
    x = d.array(d.shape(1, 4, empty=0), d.dtype(ANY))
    batch = d.between(0, x.ndim - 1) if d.opset >= 12 and d.chance(0.4) else 0
    depth = d.between(1, x.ndim - batch)
    shape = (*x.shape[:batch], *d.shape(0 if batch == 0 else 0, 2))
    attrs = {"batch_dims": batch} if batch else {}
    return d.sample("GatherND", [x, _places(d, x, shape, depth, batch)], **attrs)


def _reduction(d: Draw, op: str) -> str | None:
    least = {"ScatterElements": 16, "ScatterND": 16}[op]
    known = ["none", "add", "mul"] + (["max", "min"] if d.opset >= 18 else [])
    return d.of([None, *known]) if d.opset >= least else None


def _scatter_elements(d: Draw) -> Sample:
    d.opset = max(d.opset, 9)
    op = "ScatterElements" if d.opset >= 11 else "Scatter"
    how = None if op == "Scatter" else _reduction(d, op)
    x = d.array(d.shape(1, 3, empty=0), d.dtype(ANY if how in (None, "none") else NUMBERS))
    axis = d.axis(x.ndim)
    shape = [d.between(1, extent) for extent in x.shape]
    indices = _indices(d, shape, x.shape[axis])
    if how in (None, "none"):
        # Which of equal places is written last is nobody's promise.
        order = np.argsort(d.rng.random(x.shape), axis)
        indices = order[tuple(slice(0, extent) for extent in shape)].astype(indices.dtype)
    return d.sample(op, [x, indices, d.array(shape, str(x.dtype))], axis=axis, reduction=how)


def _scatter_nd(d: Draw) -> Sample:
    d.opset = max(d.opset, 11)
    how = _reduction(d, "ScatterND")
    x = d.array(d.shape(1, 3, empty=0), d.dtype(ANY if how in (None, "none") else NUMBERS))
    depth = d.between(1, x.ndim)
    if how in (None, "none"):
        every = np.stack(np.meshgrid(*map(np.arange, x.shape[:depth]), indexing="ij"), -1).reshape(-1, depth)
        indices = every[d.rng.permutation(len(every))[: d.between(1, len(every))]]
    else:
        indices = _places(d, x, d.shape(1, 2, empty=0), depth)
    updates = d.array((*indices.shape[:-1], *x.shape[depth:]), str(x.dtype))
    return d.sample("ScatterND", [x, indices.astype(np.int64), updates], reduction=how)


def _one_hot(d: Draw) -> Sample:
    d.opset = max(d.opset, 9)
    indices = d.array(d.shape(0 if d.opset >= 11 else 1, 3), d.of(["int64", "int32", "float32"]))
    indices = np.round(indices)
    depth = np.asarray(d.between(1, 6), d.of(["int64", "float32", "int32"]))
    depth = depth.reshape(1) if d.chance() else depth
    values = d.array((2,), d.of(["float32", "int64", "int32"]))
    return d.sample("OneHot", [indices, depth, values], fixed=[1], axis=d.of([None, -1, 0]))


def _topk(d: Draw) -> Sample:
    d.opset = max(d.opset, 7)
    x = d.array(
        d.shape(1, 4, empty=0),
        d.dtype(("float32", "float64"))
        if d.opset < 11
        else d.of(["float32", "int64", "float16", "int32", "float64", "int8", "uint8"]),
    )
    axis = d.axis(x.ndim) if d.opset >= 11 else d.between(0, x.ndim - 1)
    count = d.between(1, x.shape[axis])
    if d.opset < 10:
        return d.sample("TopK", [x], k=count, axis=axis, outputs=2)
    attrs = {"largest": d.of([None, 0, 1])} if d.opset >= 11 else {}
    return d.sample("TopK", [x, np.asarray([count], np.int64)], fixed=[1], axis=axis, outputs=2, **attrs)


def _compress(d: Draw) -> Sample:
    d.opset = max(d.opset, 9)
    x = d.array(d.shape(1, 3, empty=0), d.dtype(ANY))
    axis = d.axis(x.ndim) if d.chance(0.7) else None
    if d.opset < 11 and axis is not None:
        axis %= x.ndim
    most = x.size if axis is None else x.shape[axis]
    return d.sample("Compress", [x, d.array((d.between(1, most),), "bool")], fixed=[1], axis=axis)


def _reverse(d: Draw) -> Sample:
    d.opset = max(d.opset, 10)
    x = d.array((d.between(1, 4), d.between(1, 4), *d.shape(0, 2)), d.dtype(ANY))
    batch = d.of([0, 1])
    lengths = d.rng.integers(1, x.shape[1 - batch] + 1, x.shape[batch])
    return d.sample("ReverseSequence", [x, lengths], batch_axis=batch, time_axis=1 - batch)


INDEXING: dict[str, Maker] = {
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "OneHot": _one_hot,
    "TopK": _topk,
    "Compress": _compress,
    "ReverseSequence": _reverse,
}
