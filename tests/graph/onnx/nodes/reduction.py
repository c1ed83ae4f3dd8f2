"""Random nodes that make one element of many, or bring them to a common scale; and products of matrices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from graph.onnx.nodes.sample import FLOATS, Draw, Sample

Maker = Callable[[Draw], Sample]
_WIDE = ("float32", "float64", "float16", "int32", "int64", "bfloat16")
_REDUCTIONS = (
    *("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"),
    *("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"),
)


def _reduce(op: str, d: Draw) -> Sample:
    floats = op in ("ReduceMean", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp")
    x = d.array(d.shape(), d.dtype(FLOATS[:3] if floats else _WIDE), 1.0)
    if op == "ReduceLogSum":
        x = np.abs(x) + x.dtype.type(0.1)
    axes = d.some(range(x.ndim)) if x.ndim and d.chance(0.8) else None
    if axes and d.opset >= 11:
        axes = [axis - x.ndim if d.chance(0.3) else axis for axis in axes]
    keep = d.of([None, 0, 1])
    if d.opset < (13 if op == "ReduceSum" else 18):
        return d.sample(op, [x], axes=axes, keepdims=keep)
    operand = None if axes is None else np.asarray(axes, np.int64)
    if axes is None and d.chance(0.3):
        operand = np.zeros(0, np.int64)
    return d.sample(op, [x, operand], fixed=[1], keepdims=keep, noop_with_empty_axes=d.of([None, 0, 1]))


def _arg(op: str, d: Draw) -> Sample:
    x = d.array(d.shape(1, 4, empty=0), d.dtype(("float32", "float64", "int32", "int8", "float16")))
    if d.chance(0.4):
        x = np.round(x)
    last = d.of([None, 0, 1]) if d.opset >= 12 else None
    axis = d.axis(x.ndim) if d.opset >= 11 else d.between(0, x.ndim - 1)
    return d.sample(op, [x], axis=d.of([axis, axis, None]), keepdims=d.of([None, 0, 1]), select_last_index=last)


def _cumulative(op: str, d: Draw) -> Sample:
    d.opset = max(d.opset, 11 if op == "CumSum" else 26)
    x = d.array(d.shape(1, 4), d.of(["float32", "float64", "int32", "int64"]), 1.0)
    axis = np.asarray(d.axis(x.ndim), d.of([np.int64, np.int32]))
    flags = {"exclusive": d.of([None, 0, 1]), "reverse": d.of([None, 0, 1])}
    return d.sample(op, [x, axis], fixed=[1], **flags)


def _along(op: str, d: Draw) -> Sample:
    x = d.array(d.shape(1), d.dtype(FLOATS if op != "Hardmax" else FLOATS[:3]))
    axis = d.axis(x.ndim) if d.opset >= 11 else d.between(0, x.ndim - 1)
    return d.sample(op, [x], axis=axis if d.chance(0.8) or x.ndim == 1 else None)


def _lp_norm(d: Draw) -> Sample:
    x = d.array(d.shape(1), d.dtype(FLOATS[:2]))
    return d.sample("LpNormalization", [x], axis=d.axis(x.ndim), p=d.of([None, 1, 2]))


def _batch_norm(d: Draw) -> Sample:
    dtype = d.dtype(("float32", "float64", "float16"))
    x = d.array((d.between(1, 3), d.between(1, 4), *d.shape(0, 3)), dtype)
    c = (x.shape[1],)
    scale, bias, mean, variance = (d.array(c, dtype) for _ in range(4))
    operands = [x, scale, bias, mean, np.abs(variance) + variance.dtype.type(0.5)]
    return d.sample("BatchNormalization", operands, epsilon=d.of([None, 0.1]), fixed=range(1, 5) if d.chance() else [])


def _instance_norm(d: Draw) -> Sample:
    x = d.array((d.between(1, 3), d.between(1, 4), *d.shape(1, 3, empty=0)))
    c = (x.shape[1],)
    return d.sample("InstanceNormalization", [x, d.array(c), d.array(c)], epsilon=d.of([None, 0.1]))


def _layer_norm(op: str, d: Draw) -> Sample:
    d.opset = max(d.opset, 17 if op == "LayerNormalization" else 23)
    dtype = d.dtype(("float32", "float64", "float16"))
    x = d.array(d.shape(1, 4, empty=0), dtype)
    axis = d.axis(x.ndim)
    shape = x.shape[axis:] if axis else x.shape
    operands = [x, d.array(shape, dtype)]
    outputs = 1
    if op == "LayerNormalization":
        operands.append(d.array(shape, dtype) if d.chance() else None)  # type: ignore[arg-type]
        outputs = d.of([1, 1, 3]) if dtype == "float32" else 1
    attrs = {"axis": axis, "epsilon": d.of([None, 0.1])}
    return d.sample(op, operands, outputs=outputs, **attrs)


def _group_norm(d: Draw) -> Sample:
    d.opset = max(d.opset, 21)
    groups, each = d.between(1, 3), d.between(1, 3)
    x = d.array((d.between(1, 2), groups * each, *d.shape(1, 2, empty=0)))
    c = (groups * each,)
    return d.sample("GroupNormalization", [x, d.array(c), d.array(c)], num_groups=groups, epsilon=d.of([None, 0.1]))


def _mean_variance(d: Draw) -> Sample:
    d.opset = max(d.opset, 9)
    x = d.array((d.between(1, 3), d.between(1, 3), d.between(2, 4), d.between(2, 4)))
    return d.sample("MeanVarianceNormalization", [x], axes=d.of([None, [0, 1, 2, 3], [2, 3]]))


def _matmul(d: Draw) -> Sample:
    n, k, m = (0 if d.chance(0.04) else d.between(1, 20) for _ in range(3))
    batch = d.shape(0, 2)
    left = (*(d.broadcast(batch)), n, k) if d.chance(0.85) else (k,)
    right = (*(d.broadcast(batch)), k, m) if d.chance(0.85) else (k,)
    dtype = d.dtype(("float32", "float64", "float16", "int32", "int64") if d.opset >= 9 else ("float32", "float64"))
    return d.sample(
        "MatMul", [d.array(left, dtype, 1.0), d.array(right, dtype, 1.0)], fixed=[1] if d.chance(0.4) else []
    )


def _gemm(d: Draw) -> Sample:
    n, k, m = (d.between(1, 20) for _ in range(3))
    turned = d.of([None, 0, 1]), d.of([None, 0, 1])
    a = (k, n) if turned[0] else (n, k)
    b = (m, k) if turned[1] else (k, m)
    dtype = d.dtype(("float32", "float64", "float16"))
    c: Any = d.array(d.broadcast((n, m)), dtype)
    if d.opset >= 11 and d.chance(0.3):
        c = None
    factors = {"alpha": d.of([None, 0.5]), "beta": d.of([None, 2.0, 0.0])}
    operands = [d.array(a, dtype, 1.0), d.array(b, dtype, 1.0), c]
    return d.sample("Gemm", operands, transA=turned[0], transB=turned[1], fixed=[1] if d.chance() else [], **factors)


_EQUATIONS = (
    *("ij,jk->ik", "bij,bjk->bik", "ij->ji", "ij->i", "ij->", "i,j->ij", "ij,ij->ij", "ij,j", "bhid,bhjd->bhij"),
    *(
        "...ij,...jk->...ik",
        "ii->i",
        "ii->",
        "ij,jk,kl->il",
        "bij,j->bi",
        "ijk,k->ij",
        "...i->...",
        "i,i->",
        "ij,ik->jk",
    ),
    *("iij->ij", "ijj->i", "ij,ii->j", "b i j , b j k -> b i k"),
)


def _einsum(d: Draw) -> Sample:
    d.opset = max(d.opset, 12)
    equation = d.of(_EQUATIONS)
    extents = {letter: d.between(1, 5) for letter in "bhidjkl"}
    dots = d.shape(0, 2, empty=0)
    may_be_one = "," in equation and d.chance(0.3)
    operands = []
    for term in equation.replace(" ", "").partition("->")[0].split(","):
        letters = term.replace("...", "")
        alone = {letter for letter in letters if letters.count(letter) == 1}
        shape = [1 if may_be_one and each in alone and d.chance(0.3) else extents[each] for each in letters]
        operands.append(
            d.array(
                (*dots, *shape) if "..." in term else shape,
                d.dtype(("float32", "float64")) if not operands else str(operands[0].dtype),
            )
        )
    return d.sample("Einsum", operands, equation=equation)


def _det(d: Draw) -> Sample:
    d.opset = max(d.opset, 11)
    n = d.between(1, 5)
    return d.sample("Det", [d.array((*d.shape(0, 2), n, n))])


REDUCTION: dict[str, Maker] = {
    **{op: partial(_reduce, op) for op in _REDUCTIONS},
    **{op: partial(_arg, op) for op in ("ArgMax", "ArgMin")},
    **{op: partial(_cumulative, op) for op in ("CumSum", "CumProd")},
    **{op: partial(_along, op) for op in ("Softmax", "LogSoftmax", "Hardmax")},
    **{op: partial(_layer_norm, op) for op in ("LayerNormalization", "RMSNormalization")},
    "LpNormalization": _lp_norm,
    "BatchNormalization": _batch_norm,
    "InstanceNormalization": _instance_norm,
    "GroupNormalization": _group_norm,
    "MeanVarianceNormalization": _mean_variance,
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Einsum": _einsum,
    "Det": _det,
}
