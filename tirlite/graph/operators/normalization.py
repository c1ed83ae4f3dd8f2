"""Normalizations and softmax."""

from __future__ import annotations

import numpy as np

from tirlite.graph.builder.calls import CallBuilder, Operand, operator
from tirlite.graph.expr import Call
from tirlite.graph.extents import Shape
from tirlite.graph.op import Array, Attrs, Axis, Lowering, NodeAttributes, Site, Spelling
from tirlite.graph.operators.operands import FLOATS, broadcast_into
from tirlite.graph.types import TensorType
from tirlite.kernels.operators import formulas as f
from tirlite.record import record


@record
class Epsilon(Attrs):
    """The number added to a variance before the square root."""

    epsilon: float = 1e-5


@record
class LayerNorm(Attrs):
    """The first of the normalized axes, and the number added to the variance."""

    axis: int = -1
    epsilon: float = 1e-5


@record
class Lrn(Attrs):
    """`x / (bias + alpha / size * s) ** beta`, where s sums the squares of `size` neighbouring channels."""

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    bias: float = 1.0


def _floats(site: Site) -> TensorType:
    FLOATS.shared(site)
    return site.tensor(0)


def _channels(site: Site, x: TensorType) -> None:
    """Raises GraphError if an operand after the first does not have one element per channel."""
    if x.rank < 2:
        raise site.mismatch("operand 0 must have a batch axis and a channel axis")
    for number, each in enumerate(site.tensors()[1:], 1):
        if each.rank != 1 or not site.is_equal(each.shape[0], x.shape[1]):
            raise site.mismatch(f"operand {number} must have one element for each of {x.shape[1]} channels")


def _batch_norm_type(site: Site, attrs: Epsilon) -> TensorType:
    x = _floats(site)
    _channels(site, x)
    return x


def _layer_norm_type(site: Site, attrs: LayerNorm) -> TensorType:
    x = _floats(site)
    inner: Shape = x.shape[site.axis(attrs.axis, x.rank) :]
    for each in site.tensors()[1:]:
        broadcast_into(site, each, inner)
    return x


def _lrn_type(site: Site, attrs: Lrn) -> TensorType:
    x = _floats(site)
    if attrs.size < 1:
        raise site.bad_attribute("size must be positive")
    _channels(site, x)
    return x


def _softmax_type(site: Site, attrs: Axis) -> TensorType:
    x = _floats(site)
    site.axis(attrs.axis, x.rank)
    return x


def _per_channel(values: Array, x: Array) -> Array:
    return values.reshape(-1, *(1,) * (x.ndim - 2))


def _batch_norm(
    attrs: Epsilon, x: Array, scale: Array, bias: Array, mean: Array, variance: Array | None = None
) -> Array:
    factor = scale if variance is None else scale / np.sqrt(variance + x.dtype.type(attrs.epsilon))
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


def _lrn_of(node: NodeAttributes) -> Lrn:
    size, alpha, beta = node.integer("size"), node.number("alpha", 1e-4), node.number("beta", 0.75)
    return Lrn(size, alpha, beta, node.number("bias", 1.0))


class Normalization(CallBuilder):
    """Normalizations of float tensors. Channels are axis 1."""

    @operator(
        _batch_norm_type,
        _batch_norm,
        Lowering("normalize.batch_norm", formula=f.batch_norm, aligned=1),
        least=4,
        most=5,
        attrs=Epsilon,
        overwrites=True,
    )
    def batch_norm(
        self,
        x: Operand,
        scale: Operand,
        bias: Operand,
        mean: Operand,
        variance: Operand | None = None,
        epsilon: float = 1e-5,
    ) -> Call:
        """`(x - mean) * (scale / sqrt(variance + epsilon)) + bias`, with one number of each operand per channel.

        Without a variance it is `(x - mean) * scale + bias`.
        """
        given = (x, scale, bias, mean) if variance is None else (x, scale, bias, mean, variance)
        return self.call("batch_norm", *given, attrs=Epsilon(epsilon))

    @operator(
        _batch_norm_type,
        _instance_norm,
        "normalize.instance_norm",
        least=3,
        attrs=Epsilon,
        overwrites=True,
        onnx=Spelling("InstanceNormalization", lambda node: Epsilon(node.number("epsilon", 1e-5))),
    )
    def instance_norm(self, x: Operand, scale: Operand, bias: Operand, epsilon: float = 1e-5) -> Call:
        """As batch_norm, with the mean and variance of each channel of each batch item."""
        return self.call("instance_norm", x, scale, bias, attrs=Epsilon(epsilon))

    @operator(_layer_norm_type, _layer_norm, "normalize.layer_norm", least=2, most=3, attrs=LayerNorm, overwrites=True)
    def layer_norm(
        self, x: Operand, scale: Operand, bias: Operand | None = None, *, axis: int = -1, epsilon: float = 1e-5
    ) -> Call:
        """As batch_norm, with the mean and variance over the axes from `axis` on, to which scale and bias broadcast."""
        return self.call("layer_norm", x, scale, *(() if bias is None else (bias,)), attrs=LayerNorm(axis, epsilon))

    @operator(_lrn_type, _lrn, "normalize.lrn", attrs=Lrn, onnx=Spelling("LRN", _lrn_of))
    def lrn(self, x: Operand, size: int, *, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Call:
        """`x / (bias + alpha / size * s) ** beta`, where s sums the squares of `size` neighbouring channels."""
        return self.call("lrn", x, attrs=Lrn(size, alpha, beta, bias))

    @operator(_softmax_type, _softmax, "normalize.softmax", attrs=Axis, overwrites=True)
    def softmax(self, x: Operand, axis: int = -1) -> Call:
        """`exp(x)` divided by its sum along an axis."""
        return self.call("softmax", x, attrs=Axis(axis))

    @operator(_softmax_type, _log_softmax, "normalize.log_softmax", attrs=Axis, overwrites=True)
    def log_softmax(self, x: Operand, axis: int = -1) -> Call:
        """The logarithm of softmax."""
        return self.call("log_softmax", x, attrs=Axis(axis))
