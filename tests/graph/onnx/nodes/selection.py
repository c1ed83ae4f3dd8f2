"""Random nodes that leave as many elements as their operands say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from graph.onnx.nodes.sample import NUMBERS, Draw, Sample

Maker = Callable[[Draw], Sample]
ANY = (*NUMBERS, "bool")


def _few(d: Draw, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Elements of which many are equal, and many are zero."""
    return np.asarray(d.array(shape, dtype) * 0 + d.rng.integers(0, 3, shape)).astype(d.array((), dtype).dtype)


def _nonzero(d: Draw) -> Sample:
    d.opset = max(d.opset, 9)
    return d.sample("NonZero", [_few(d, d.shape(1, 4), d.of(("float32", "int64", "int32", "bool", "uint8")))])


def _compress(d: Draw) -> Sample:
    d.opset = max(d.opset, 11)
    x = d.array(d.shape(1, 4, empty=0), d.dtype(ANY))
    if d.chance(0.3):
        return d.sample("Compress", [x, d.array((d.between(1, x.size),), "bool")])
    axis = d.axis(x.ndim)
    return d.sample("Compress", [x, d.array((d.between(1, x.shape[axis]),), "bool")], axis=axis)


def _unique(d: Draw) -> Sample:
    d.opset = max(d.opset, 11)
    x = _few(d, d.shape(1, 3, empty=0), d.of(("float32", "float64", "int64", "int8")))
    attrs = {"axis": d.axis(x.ndim)} if d.chance() else {}
    return d.sample("Unique", [x], outputs=4, **attrs, sorted=d.between(0, 1))


def _non_max_suppression(d: Draw) -> Sample:
    d.opset = max(d.opset, 11)
    batches, classes, boxes = d.between(1, 2), d.between(1, 3), d.between(1, 12)
    corners = np.asarray(d.rng.uniform(0, 1, (batches, boxes, 4)), np.float32)
    scores = np.asarray(d.rng.integers(0, 6, (batches, classes, boxes)) / 5, np.float32)
    limits = [np.array([value], np.float32) for value in (d.rng.uniform(0, 1), d.rng.uniform(-0.1, 1))]
    operands = [corners, scores, np.array([d.between(0, boxes + 2)], np.int64), *limits]
    fixed = [2] if d.chance(0.3) else []
    return d.sample("NonMaxSuppression", operands[: d.between(3, 5)], fixed=fixed, center_point_box=d.between(0, 1))


def _topk(d: Draw) -> Sample:
    d.opset = max(d.opset, 11)
    x = d.array(d.shape(1, 3, empty=0), d.of(("float32", "int64", "int32")))
    axis = d.axis(x.ndim)
    count = np.array([d.between(0, x.shape[axis])], np.int64)
    return d.sample("TopK", [x, count], outputs=2, axis=axis, largest=d.between(0, 1))


def _slice(d: Draw) -> Sample:
    d.opset = max(d.opset, 11)
    x = d.array(d.shape(1, 3), d.dtype(ANY))
    axes = sorted(d.some(range(x.ndim)))
    ends = [np.array([d.between(-7, 7) for _ in axes], np.int64) for _ in range(2)]
    steps = np.array([d.of([1, 1, 2, -1, -2]) for _ in axes], np.int64)
    fixed = [
        *([3] if d.chance(0.7) else []),
        *([4] if d.chance(0.7) else []),
        *([d.between(1, 2)] if d.chance(0.3) else []),
    ]
    return d.sample("Slice", [x, *ends, np.array(axes, np.int64), steps], fixed=sorted(fixed))


SELECTION: dict[str, Maker] = {
    "NonZero": _nonzero,
    "Compress": _compress,
    "Unique": _unique,
    "NonMaxSuppression": _non_max_suppression,
    "TopK of a computed number": _topk,
    "Slice between computed places": _slice,
}
