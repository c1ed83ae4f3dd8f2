"""The meanings of operators of one operand that look at one element at a time."""

from __future__ import annotations

from math import erf, pi, sqrt

import numpy as np

from tirlite.graph.ops.elementwise import Alpha, Cast, Clip, Gelu, HardSigmoid, Selu
from tirlite.graph.reference.meaning import Array, Meaning, plain
from tirlite.ir import DType


def _erf(x: Array) -> Array:
    values = np.fromiter((erf(value) for value in x.ravel().tolist()), np.float64, x.size)
    return np.asarray(values.reshape(x.shape), x.dtype)


def _sigmoid(x: Array) -> Array:
    # The exponential of what is not positive never overflows.
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small)).astype(x.dtype)


def _softplus(x: Array) -> Array:
    return np.asarray(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


def _gelu(attrs: Gelu, x: Array) -> Array:
    if attrs.approximate:
        inner = x.dtype.type(sqrt(2 / pi)) * (x + x.dtype.type(0.044715) * x**3)
        return np.asarray(x * (1 + np.tanh(inner)) / 2)
    return np.asarray(x * (1 + _erf(x / x.dtype.type(sqrt(2)))) / 2)


def _relu(x: Array) -> Array:
    return np.asarray(np.maximum(x, x.dtype.type(0)))


def _clip(attrs: Clip, x: Array) -> Array:
    if attrs.low is not None:
        x = np.maximum(x, x.dtype.type(attrs.low))
    if attrs.high is not None:
        x = np.minimum(x, x.dtype.type(attrs.high))
    return x


def _leaky_relu(attrs: Alpha, x: Array) -> Array:
    return np.where(x < 0, x.dtype.type(attrs.alpha) * x, x)


def _elu(attrs: Alpha, x: Array) -> Array:
    return np.where(x < 0, x.dtype.type(attrs.alpha) * np.expm1(x), x)


def _celu(attrs: Alpha, x: Array) -> Array:
    alpha = x.dtype.type(attrs.alpha)
    return np.asarray(np.maximum(x, 0) + np.minimum(alpha * np.expm1(x / alpha), 0))


def _selu(attrs: Selu, x: Array) -> Array:
    alpha, gamma = x.dtype.type(attrs.alpha), x.dtype.type(attrs.gamma)
    return np.asarray(gamma * np.where(x > 0, x, alpha * np.expm1(x)))


def _hard_sigmoid(attrs: HardSigmoid, x: Array) -> Array:
    alpha, beta = x.dtype.type(attrs.alpha), x.dtype.type(attrs.beta)
    return np.asarray(np.maximum(np.minimum(alpha * x + beta, x.dtype.type(1)), x.dtype.type(0)))


def _hard_swish(x: Array) -> Array:
    return np.asarray(x * _hard_sigmoid(HardSigmoid(1 / 6, 0.5), x))


def converted(x: Array, dtype: DType) -> Array:
    """The elements in another type: floats become integers by cutting, saturate, and nan gives 0."""
    if dtype.is_bool:
        return np.asarray(x != 0)
    if not dtype.is_integer or x.dtype.kind != "f":
        return x.astype(dtype.numpy)
    with_numbers = np.where(np.isnan(x), x.dtype.type(0), np.trunc(x))
    low, high = float(dtype.min), float(dtype.max)
    inside = np.clip(with_numbers.astype(np.float64), low, high)
    # The greatest 64-bit integers are not floats: what is above them is put in by hand.
    made = np.where(inside >= high, 0, inside).astype(dtype.numpy)
    return np.where(inside >= high, dtype.numpy.type(dtype.max), made)


def _cast(attrs: Cast, x: Array) -> Array:
    # Half precision is kept in f32 here, and rounded by whoever called.
    wide = attrs.dtype.is_float and attrs.dtype.bits == 16
    return x.astype(np.float32) if wide else converted(x, attrs.dtype)


def _bitcast(attrs: Cast, x: Array) -> Array:
    # An array without axes has no view of another type.
    return np.atleast_1d(x).view(attrs.dtype.numpy).reshape(x.shape)


_UFUNCS = (
    "exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan sinh cosh tanh floor ceil trunc"
    " negative abs sign isnan isinf logical_not"
)

ELEMENTWISE: dict[str, Meaning] = {
    **{name: plain(getattr(np, name)) for name in _UFUNCS.split()},
    **{name: plain(getattr(np, f"arc{name[1:]}")) for name in "asin acos atan asinh acosh atanh".split()},  # noqa: SIM905
    "bitcast": _bitcast,
    "bitwise_not": plain(np.bitwise_not),
    "cast": _cast,
    "celu": _celu,
    "clip": _clip,
    "elu": _elu,
    "erf": plain(_erf),
    "gelu": _gelu,
    "hard_sigmoid": _hard_sigmoid,
    "hard_swish": plain(_hard_swish),
    "identity": plain(lambda x: x),
    "leaky_relu": _leaky_relu,
    "mish": plain(lambda x: x * np.tanh(_softplus(x))),
    "reciprocal": plain(lambda x: 1 / x),
    "relu": plain(_relu),
    "round": plain(np.rint),
    "rsqrt": plain(lambda x: 1 / np.sqrt(x)),
    "selu": _selu,
    "sigmoid": plain(_sigmoid),
    "silu": plain(lambda x: x * _sigmoid(x)),
    "softplus": plain(_softplus),
    "softsign": plain(lambda x: x / (1 + np.abs(x))),
}
