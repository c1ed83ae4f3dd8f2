"""The meanings of operators that bring elements to a common scale."""

from __future__ import annotations

import numpy as np

from tirlite.graph.ops.normalization import Axis, Epsilon, LayerNorm, Lrn
from tirlite.graph.reference.meaning import Array, Meaning


def _per_channel(values: Array, x: Array) -> Array:
    return values.reshape(-1, *(1,) * (x.ndim - 2))


def _batch_norm(attrs: Epsilon, x: Array, scale: Array, bias: Array, mean: Array, variance: Array) -> Array:
    factor = scale / np.sqrt(variance + x.dtype.type(attrs.epsilon))
    return np.asarray((x - _per_channel(mean, x)) * _per_channel(factor, x) + _per_channel(bias, x))


def _standard(x: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    centred = x - x.mean(axes, keepdims=True)
    variance = (centred * centred).mean(axes, keepdims=True)
    return np.asarray(centred / np.sqrt(variance + x.dtype.type(epsilon)))


def _instance_norm(attrs: Epsilon, x: Array, scale: Array, bias: Array) -> Array:
    standard = _standard(x, tuple(range(2, x.ndim)), attrs.epsilon)
    return np.asarray(standard * _per_channel(scale, x) + _per_channel(bias, x))


def _layer_norm(attrs: LayerNorm, x: Array, scale: Array, bias: Array | None = None) -> Array:
    standard = _standard(x, tuple(range(attrs.axis % x.ndim, x.ndim)), attrs.epsilon)
    scaled = standard * scale
    return np.asarray(scaled if bias is None else scaled + bias)


def _lrn(attrs: Lrn, x: Array) -> Array:
    before = (attrs.size - 1) // 2
    squares = np.pad(x * x, [(0, 0), (before, attrs.size - 1 - before), *[(0, 0)] * (x.ndim - 2)])
    summed = np.lib.stride_tricks.sliding_window_view(squares, attrs.size, 1).sum(-1)
    factor, kind = attrs.alpha / attrs.size, x.dtype.type
    return np.asarray(x / (kind(attrs.bias) + kind(factor) * summed) ** kind(attrs.beta))


def _softmax(attrs: Axis, x: Array) -> Array:
    powers = np.exp(x - x.max(attrs.axis, keepdims=True, initial=-np.inf))
    return np.asarray(powers / powers.sum(attrs.axis, keepdims=True))


def _log_softmax(attrs: Axis, x: Array) -> Array:
    shifted = x - x.max(attrs.axis, keepdims=True, initial=-np.inf)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(attrs.axis, keepdims=True)))


NORMALIZATION: dict[str, Meaning] = {
    "batch_norm": _batch_norm,
    "instance_norm": _instance_norm,
    "layer_norm": _layer_norm,
    "log_softmax": _log_softmax,
    "lrn": _lrn,
    "softmax": _softmax,
}
