"""Importers of operators that pick or put elements by index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tirlite.graph.expr import Constant, Expr
from tirlite.graph.onnx.computed import elements_of, extent_of, numbers, scalar
from tirlite.graph.onnx.narrow import DTYPES, NUMBERS
from tirlite.graph.onnx.node import Node, Unsupported
from tirlite.graph.onnx.translation import Importer, Translation
from tirlite.ir import i32, i64
from tirlite.sizes import Size


def check_indices(t: Translation, node: Node) -> None:
    """Raises Unsupported where an index that is known lies outside of the first operand, in a node that surely runs."""
    if not t.is_sure or not isinstance(node.x(1), Constant):
        return
    indices, shape, name = node.array(1), node.first.shape, node.proto.input[1]
    if node.op in ("GatherND", "ScatterND"):
        first = node.integer("batch_dims") if node.op == "GatherND" else 0
        for column in range(indices.shape[-1]):
            _check_along(first + column, shape[first + column], indices[..., column], name)
    else:
        axis = node.axis()
        _check_along(axis, shape[axis], indices, name)


def _check_along(axis: int, extent: Size, indices: npt.NDArray[Any], name: str) -> None:
    if isinstance(extent, int):
        for index in indices[(indices < -extent) | (indices >= extent)][:1]:
            raise Unsupported(f"index {index} in input `{name}` lies outside of axis {axis}, of {extent} elements")


def _scatter_elements(t: Translation, node: Node) -> Expr:
    check_indices(t, node)
    how = node.text("reduction", "none")
    return t.b.scatter_elements(node.x(0), node.x(1), node.x(2), node.axis("axis", 0), reduction=how)


def _one_hot(t: Translation, node: Node) -> Expr:
    (depth,) = elements_of(t, t.fold(t.b.cast(node.x(1), i64)), 1)
    indices = node.first
    if indices.dtype not in (i32, i64):
        indices = t.b.cast(indices, i64)
    return t.b.one_hot(indices, extent_of(t, depth), node.x(2), axis=node.axis("axis", -1, rank=node.rank + 1))


def _reverse_sequence(t: Translation, node: Node) -> Expr:
    """The first elements of each sequence of a batch in the other order."""
    x, lengths = node.first, t.b.cast(node.x(1), i64)
    time, batch = node.axis("time_axis", 0), node.axis("batch_axis", 1)
    if {time, batch} != {0, 1}:
        raise Unsupported("its axes of time and batch are not the first two")
    order = (1, 0, *range(2, node.rank))
    ordered = x if batch == 0 else t.b.transpose(x, order)
    count = x.shape[time]
    steps = t.b.reshape(numbers(t, count), (1, count))
    ends = t.b.reshape(lengths, (x.shape[batch], 1))
    places = t.b.where(t.b.less(steps, ends), t.b.subtract(t.b.subtract(ends, 1), steps), steps)
    made = t.b.gather_nd(ordered, t.b.unsqueeze(places, -1), batch_dims=1)
    return made if batch == 0 else t.b.transpose(made, order)


def _above_diagonal(t: Translation, rows: Size, columns: Size) -> Expr:
    """How far each element of a matrix stands to the right of the diagonal."""
    zero, one = t.b.constant(np.int64(0)), t.b.constant(np.int64(1))
    row = t.b.reshape(t.b.range(zero, one, rows), (rows, 1))
    return t.b.subtract(t.b.range(zero, one, columns), row)


def _trilu(t: Translation, node: Node) -> Expr:
    *_, rows, columns = node.first.shape
    (shift,) = elements_of(t, node.x(1), 1) if node.has(1) else (0,)
    distance = _above_diagonal(t, rows, columns)
    compare = t.b.greater_equal if node.flag("upper", 1) else t.b.less_equal
    inside = compare(distance, scalar(t, shift))
    false = t.b.cast(t.b.constant(np.int64(0)), node.first.dtype)
    return t.b.where(inside, node.first, false)


def _eye_like(t: Translation, node: Node) -> Expr:
    from_here = node.first
    rows, columns = from_here.shape
    distance = _above_diagonal(t, rows, columns)
    number = node.integer("dtype", NUMBERS[from_here.dtype])
    if number not in DTYPES:
        raise Unsupported("there is no such element type here")
    return t.b.cast(t.b.equal(distance, node.integer("k")), DTYPES[number])


INDEXING: Mapping[str, Importer] = {
    "ScatterElements": _scatter_elements,
    "Scatter": _scatter_elements,
    "OneHot": _one_hot,
    "Trilu": _trilu,
    "EyeLike": _eye_like,
    "ReverseSequence": _reverse_sequence,
}
