"""Importers of operators that make one element of many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tirlite.graph.expr import Expr
from tirlite.graph.extents import product
from tirlite.graph.onnx.computed import scalar
from tirlite.graph.onnx.node import Node, axis_of
from tirlite.graph.onnx.translation import Importer, Translation
from tirlite.sizes import Proof, prove_eq

_NAMES = {
    "ReduceSum": "sum",
    "ReduceMean": "mean",
    "ReduceMax": "max",
    "ReduceMin": "min",
    "ReduceProd": "prod",
    "ReduceL1": "l1",
    "ReduceL2": "l2",
    "ReduceSumSquare": "sum_square",
    "ReduceLogSum": "log_sum",
    "ReduceLogSumExp": "log_sum_exp",
}


def _reduce(t: Translation, node: Node) -> Expr:
    x = node.first
    axes = node.known(1) if node.has(1) else node.integers("axes")
    if not axes:
        if node.flag("noop_with_empty_axes"):
            return _alone(t, node, x)
        axes = tuple(range(node.rank))
    function = getattr(t.b, f"reduce_{_NAMES[node.op]}")
    places = [axis_of(axis, node.rank) for axis in axes]
    keepdims = node.flag("keepdims", 1)
    if node.op in _EMPTY and any(prove_eq(x.shape[place], 0) is Proof.YES for place in places):
        return _of_nothing(t, node, places, keepdims=keepdims)
    if x.dtype.is_bool and node.op in ("ReduceMax", "ReduceMin"):
        either = t.b.reduce_any if node.op == "ReduceMax" else t.b.reduce_all
        return either(x, places, keepdims=keepdims)
    if x.dtype.is_integer and node.op == "ReduceMean":
        count = t.b.cast(scalar(t, product(x.shape[place] for place in places)), x.dtype)
        return t.b.trunc_divide(t.b.reduce_sum(x, places, keepdims=keepdims), t.b.maximum(count, 1))
    made: Expr = function(x, places, keepdims=keepdims)
    return made


# What the operators that need an element give where there is none.
_EMPTY = {"ReduceMax": -np.inf, "ReduceMin": np.inf, "ReduceLogSumExp": -np.inf, "ReduceLogSum": -np.inf}


def _of_nothing(t: Translation, node: Node, places: Sequence[int], *, keepdims: bool) -> Expr:
    dtype, value = node.dtype, _EMPTY[node.op]
    if dtype.is_float:
        fill: Expr = t.b.cast(t.b.constant(np.float32(value)), dtype)
    else:
        fill = t.b.constant(dtype.min if value < 0 else dtype.max, dtype)
    kept = [axis for axis in range(node.rank) if keepdims or axis not in places]
    return t.b.broadcast_to(fill, [1 if axis in places else node.first.shape[axis] for axis in kept])


def _alone(t: Translation, node: Node, x: Expr) -> Expr:
    """What a reduction over no axis does with each element."""
    if node.op == "ReduceLogSum":
        return t.b.log(x)
    if node.op == "ReduceSumSquare":
        return t.b.multiply(x, x)
    return t.b.abs(x) if node.op in ("ReduceL1", "ReduceL2") else t.b.identity(x)


def _cumulative(t: Translation, node: Node) -> Expr:
    (axis,) = node.known(1)
    flags = {"exclusive": node.flag("exclusive"), "reverse": node.flag("reverse")}
    function = t.b.cumsum if node.op == "CumSum" else t.b.cumprod
    return function(node.first, axis_of(axis, node.rank), **flags)


REDUCTION: Mapping[str, Importer] = {
    **dict.fromkeys(_NAMES, _reduce),
    "CumSum": _cumulative,
    "CumProd": _cumulative,
}
