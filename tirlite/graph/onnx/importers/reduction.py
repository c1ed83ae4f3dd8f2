"""Importers of reductions, cumulative sums and normalizations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tirlite.graph.expr import Constant, Expr
from tirlite.graph.extents import product
from tirlite.graph.onnx.computed import scalar
from tirlite.graph.onnx.narrow import DTYPES
from tirlite.graph.onnx.node import OnnxNode, Unsupported, axis_of
from tirlite.graph.onnx.translation import Importer, Translation
from tirlite.graph.operators.reduction import Axes
from tirlite.ir import f32
from tirlite.sizes import Proof, prove_eq

_KINDS = ["sum", "mean", "max", "min", "prod", "l1", "l2", "sum_square", "log_sum", "log_sum_exp"]
_NAMES = {f"Reduce{kind.title().replace('_', '')}": kind for kind in _KINDS}


def _reduce(t: Translation, node: OnnxNode) -> Expr:
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


# The results of reductions over no elements, for operators that otherwise need one.
_EMPTY = {"ReduceMax": -np.inf, "ReduceMin": np.inf, "ReduceLogSumExp": -np.inf, "ReduceLogSum": -np.inf}


def _of_nothing(t: Translation, node: OnnxNode, places: Sequence[int], *, keepdims: bool) -> Expr:
    dtype, value = node.dtype, _EMPTY[node.op]
    if dtype.is_float:
        fill: Expr = t.b.cast(t.b.constant(np.float32(value)), dtype)
    else:
        fill = t.b.constant(dtype.min if value < 0 else dtype.max, dtype)
    kept = [axis for axis in range(node.rank) if keepdims or axis not in places]
    return t.b.broadcast_to(fill, [1 if axis in places else node.first.shape[axis] for axis in kept])


def _alone(t: Translation, node: OnnxNode, x: Expr) -> Expr:
    """A reduction over no axes, which only maps each element."""
    if node.op == "ReduceLogSum":
        return t.b.log(x)
    if node.op == "ReduceSumSquare":
        return t.b.multiply(x, x)
    return t.b.abs(x) if node.op in ("ReduceL1", "ReduceL2") else t.b.identity(x)


def _cumulative(t: Translation, node: OnnxNode) -> Expr:
    (axis,) = node.known(1)
    flags = {"exclusive": node.flag("exclusive"), "reverse": node.flag("reverse")}
    function = t.b.cumsum if node.op == "CumSum" else t.b.cumprod
    return function(node.first, axis_of(axis, node.rank), **flags)


REDUCTION: Mapping[str, Importer] = {
    **dict.fromkeys(_NAMES, _reduce),
    "CumSum": _cumulative,
    "CumProd": _cumulative,
}


def _batch_norm(t: Translation, node: OnnxNode) -> Sequence[Expr]:
    if node.rank == 1:
        raise Unsupported("its operand has no channels")
    if not node.integer("spatial", 1):
        raise Unsupported("it has a mean for each element")
    x, scale, bias, mean, variance = (node.x(number) for number in range(5))
    kinds = {each.dtype for each in (scale, bias, mean, variance)}
    if node.flag("training_mode"):
        return _trained(t, node)
    if any(map(node.wants, range(1, 5))):
        raise Unsupported("it computes means and variances, as in training")
    if kinds != {x.dtype}:
        scale, bias, mean, variance = (t.b.cast(each, x.dtype) for each in (scale, bias, mean, variance))
    epsilon = node.number("epsilon", 1e-5)
    # Not for f16: the factor would be rounded to the network's type, while the kernel keeps it in f32.
    if isinstance(scale, Constant) and isinstance(variance, Constant) and x.dtype.bits > 16:
        return [t.b.batch_norm(x, t.b.divide(scale, t.b.sqrt(t.b.add(variance, epsilon))), bias, mean)]
    return [t.b.batch_norm(x, scale, bias, mean, variance, epsilon)]


def _trained(t: Translation, node: OnnxNode) -> Sequence[Expr]:
    """Normalizes by the batch's own mean and variance; also returns the updated running ones."""
    x, scale, bias, mean, variance = (node.x(number) for number in range(5))
    axes = [axis for axis in range(node.rank) if axis != 1]
    wide = t.b.cast(x, mean.dtype)
    own = t.b.reduce_mean(wide, axes)
    apart = t.b.subtract(wide, t.b.reshape(own, (own.shape[0], *(1 for _ in axes[1:]))))
    spread = t.b.reduce_mean(t.b.multiply(apart, apart), axes)
    factor, shift, middle, width = (t.b.cast(each, x.dtype) for each in (scale, bias, own, spread))
    made = t.b.batch_norm(x, factor, shift, middle, width, node.number("epsilon", 1e-5))
    kept = node.number("momentum", 0.9)
    return [
        made,
        *(
            t.b.add(t.b.multiply(old, kept), t.b.multiply(new, 1 - kept))
            for old, new in ((mean, own), (variance, spread))
        ),
    ]


def _layer_norm(t: Translation, node: OnnxNode) -> list[Expr | None]:
    x, axis, epsilon = node.first, node.axis("axis", -1), node.number("epsilon", 1e-5)
    made = t.b.layer_norm(x, node.x(1), node.maybe(2), axis=axis, epsilon=epsilon)
    if not node.wants(1) and not node.wants(2):
        return [made]
    kind = DTYPES[node.integer("stash_type", 1)]
    wide = t.b.cast(x, kind)
    _, mean, inverse = _moments(t, wide, range(axis, node.rank), epsilon)
    return [made, mean, inverse]


def _moments(t: Translation, x: Expr, axes: Axes, epsilon: float) -> tuple[Expr, Expr, Expr]:
    """x minus its mean over some axes, the mean, and the reciprocal of the standard deviation."""
    mean = t.b.reduce_mean(x, axes, keepdims=True)
    apart = t.b.subtract(x, mean)
    return apart, mean, _inverse_root(t, apart, axes, epsilon)


def _inverse_root(t: Translation, x: Expr, axes: Axes, epsilon: float) -> Expr:
    """The reciprocal root of the mean of squares over some axes."""
    squares = t.b.reduce_mean(t.b.multiply(x, x), axes, keepdims=True)
    return t.b.rsqrt(t.b.add(squares, epsilon))


def _rms_norm(t: Translation, node: OnnxNode) -> Sequence[Expr]:
    """Multiplies by the reciprocal root, where the standard divides; the second result is that reciprocal root."""
    x, axis = node.first, node.axis("axis", -1)
    wide = t.b.cast(x, DTYPES[node.integer("stash_type", 1)])
    inverse = _inverse_root(t, wide, range(axis, node.rank), node.number("epsilon", 1e-5))
    return t.b.multiply(t.b.cast(t.b.multiply(wide, inverse), x.dtype), node.x(1)), inverse


def _group_norm(t: Translation, node: OnnxNode) -> Expr:
    """Instance normalization of groups of channels, then scale and bias per channel."""
    x, groups = node.first, node.integer("num_groups", 1)
    batch, channels, *rest = x.shape
    wide = t.b.cast(x, DTYPES[node.integer("stash_type", 1)]) if node.version >= 21 else x
    apart = t.b.reshape(wide, (batch, groups, product((channels // groups, *rest))))
    centred, _, inverse = _moments(t, apart, 2, node.number("epsilon", 1e-5))
    scaled = t.b.multiply(centred, inverse)
    back = t.b.cast(t.b.reshape(scaled, x.shape), x.dtype)
    factors = []
    for number in (1, 2):
        each = node.x(number)
        if node.version < 21:
            grown = t.b.broadcast_to(t.b.reshape(each, (groups, 1)), (groups, channels // groups))
            each = t.b.reshape(grown, (channels,))
        factors.append(t.b.reshape(each, (channels, *(1 for _ in rest))))
    return t.b.add(t.b.multiply(back, factors[0]), factors[1])


def _softmax(t: Translation, node: OnnxNode) -> Expr:
    function = t.b.softmax if node.op == "Softmax" else t.b.log_softmax
    is_alone = node.version >= 13
    return along(t, function, node.first, node.axis("axis", -1 if is_alone else 1), is_alone=is_alone)


def along(t: Translation, function: Callable[[Expr, int], Expr], x: Expr, axis: int, *, is_alone: bool) -> Expr:
    """Applies a function along an axis; unless `is_alone`, as before opset 13, to all axes from that one on as one."""
    shape = x.shape
    if is_alone or axis == len(shape) - 1:
        return function(x, axis)
    flat = t.b.reshape(x, (product(shape[:axis]), product(shape[axis:])))
    return t.b.reshape(function(flat, 1), shape)


def _hardmax(t: Translation, node: OnnxNode) -> Expr:
    x, shape = node.first, node.first.shape
    axis = node.axis("axis", -1 if node.version >= 13 else 1)
    if node.version < 13:
        x = t.b.reshape(x, (product(shape[:axis]), product(shape[axis:])))
        axis = 1
    if prove_eq(x.shape[axis], 0) is Proof.YES:
        return node.first
    values, extent, kept = t.b.cast(t.b.constant([0, 1]), x.dtype), x.shape[axis], list(x.shape)
    if not isinstance(extent, int):
        # The axis may be empty: append -inf, whose index is outside of the one-hot axis.
        kept[axis] = 1
        x = t.b.concat([x, t.b.broadcast_to(t.b.cast(t.b.constant(np.float32(-np.inf)), x.dtype), kept)], axis)
    return t.b.reshape(t.b.one_hot(t.b.argmax(x, axis), extent, values, axis=axis), shape)


def _lp_norm(t: Translation, node: OnnxNode) -> Expr:
    x, axis = node.first, node.axis("axis", -1)
    reduce = t.b.reduce_l1 if node.integer("p", 2) == 1 else t.b.reduce_l2
    norm = reduce(x, axis, keepdims=True)
    return t.b.divide(x, t.b.where(t.b.equal(norm, 0.0), 1.0, norm))


def _mean_variance_norm(t: Translation, node: OnnxNode) -> Expr:
    """The variance is the mean of squared distances: the standard's difference of means may be below 0 by rounding."""
    x = node.first
    axes = [axis_of(axis, node.rank) for axis in node.integers("axes") or (0, 2, 3)]
    wide = t.b.cast(x, f32) if x.dtype.bits == 16 else x
    apart = t.b.subtract(wide, t.b.reduce_mean(wide, axes, keepdims=True))
    deviation = t.b.sqrt(t.b.reduce_mean(t.b.multiply(apart, apart), axes, keepdims=True))
    return t.b.cast(t.b.divide(apart, t.b.add(deviation, 1e-9)), x.dtype)


NORMALIZATION: Mapping[str, Importer] = {
    "BatchNormalization": _batch_norm,
    "LayerNormalization": _layer_norm,
    # onnxruntime defines the second one in the standard's domain.
    **dict.fromkeys(["RMSNormalization", "SimplifiedLayerNormalization"], _rms_norm),
    "GroupNormalization": _group_norm,
    "Softmax": _softmax,
    "LogSoftmax": _softmax,
    "Hardmax": _hardmax,
    "LpNormalization": _lp_norm,
    "MeanVarianceNormalization": _mean_variance_norm,
}
