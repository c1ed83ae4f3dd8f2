"""Elementwise operators of one operand: each with its type, its value, and its formula.

To add one, add a line: what it gives, which elements it takes, its NumPy function, its formula as a kernel computes it,
and, where it is one, the operator of ONNX.
"""

from __future__ import annotations

from math import erf, pi, sqrt

import numpy as np

from tirlite.graph.builder.calls import CallBuilder, Operand, formula, operator, unary
from tirlite.graph.expr import Call
from tirlite.graph.op import Array, Attrs, Lowering, Site, Spelling
from tirlite.graph.operators.operands import BITS, BOOLS, FLOATS, NUMBERS, Elements
from tirlite.graph.types import TensorType
from tirlite.ir import BitNot, DType, Not, bool_
from tirlite.kernels.operators import formulas as f
from tirlite.record import record


@record
class Cast(Attrs):
    """The element type of the result."""

    dtype: DType


@record
class Clip(Attrs):
    """The least and the greatest value; None means no limit."""

    low: float | int | None = None
    high: float | int | None = None


@record
class Alpha(Attrs):
    """The slope or scale for negative elements."""

    alpha: float = 0.01


@record
class HardSigmoid(Attrs):
    """`max(0, min(1, alpha * x + beta))`."""

    alpha: float = 0.2
    beta: float = 0.5


@record
class Selu(Attrs):
    """`gamma * (x if x > 0 else alpha * (exp(x) - 1))`."""

    alpha: float = 1.6732631921768188
    gamma: float = 1.0507009873554805


@record
class Gelu(Attrs):
    """Whether GELU is approximated by tanh instead of computed by erf."""

    approximate: bool = False


# Names for messages.
_BITS = Elements("integers", BITS.holds)


def _same(site: Site, attrs: Attrs) -> TensorType:
    return site.tensor(0)


def _test(site: Site, attrs: Attrs) -> TensorType:
    return TensorType(FLOATS.first(site).shape, bool_)


def _bitcast_type(site: Site, attrs: Cast) -> TensorType:
    x = site.tensor(0)
    for each in (x.dtype, attrs.dtype):
        if each.is_float and each.bits == 16:
            raise site.wrong_type(f"the bits of {each} are not looked at: it is computed in f32")
    if x.dtype.bytes != attrs.dtype.bytes or attrs.dtype.is_bool:
        raise site.bad_attribute(f"the bits of {x.dtype} are not those of {attrs.dtype}")
    return TensorType(x.shape, attrs.dtype)


def _cast_type(site: Site, attrs: Cast) -> TensorType:
    x = site.tensor(0)
    if x.dtype.is_handle or attrs.dtype.is_handle or attrs.dtype.lanes != x.dtype.lanes:
        raise site.wrong_type(f"{x.dtype} does not become {attrs.dtype}")
    return TensorType(x.shape, attrs.dtype)


def _clip_type(site: Site, attrs: Clip) -> TensorType:
    x = NUMBERS.first(site)
    for limit in (attrs.low, attrs.high):
        if isinstance(limit, float) and x.dtype.is_integer:
            raise site.bad_attribute(f"{limit} is not a limit of {x.dtype}")
    return x


def _erf(x: Array) -> Array:
    values = np.fromiter((erf(value) for value in x.ravel().tolist()), np.float64, x.size)
    return np.asarray(values.reshape(x.shape), x.dtype)


def _sigmoid(x: Array) -> Array:
    # The exponential of a number that is not positive never overflows.
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


def converted(x: Array, dtype: DType) -> Array:
    """The elements in another type: floats become integers by truncation and saturation; nan becomes 0."""
    if dtype.is_bool:
        return np.asarray(x != 0)
    if not dtype.is_integer or x.dtype.kind != "f":
        return x.astype(dtype.numpy)
    with_numbers = np.where(np.isnan(x), x.dtype.type(0), np.trunc(x))
    low, high = float(dtype.min), float(dtype.max)
    inside = np.clip(with_numbers.astype(np.float64), low, high)
    # The greatest 64-bit integers are no floats: values above them are set explicitly.
    made = np.where(inside >= high, 0, inside).astype(dtype.numpy)
    return np.where(inside >= high, dtype.numpy.type(dtype.max), made)


def _cast(attrs: Cast, x: Array) -> Array:
    # Half precision is returned as f32; the caller rounds it.
    wide = attrs.dtype.is_float and attrs.dtype.bits == 16
    return x.astype(np.float32) if wide else converted(x, attrs.dtype)


def _bitcast(attrs: Cast, x: Array) -> Array:
    # NumPy cannot view a 0-d array as another type.
    return np.atleast_1d(x).view(attrs.dtype.numpy).reshape(x.shape)


def _alpha(name: str, default: float) -> Spelling:
    return Spelling(name, lambda node: Alpha(node.number("alpha", default)))


class Elementwise(CallBuilder):
    """Elementwise functions. Unless stated otherwise they accept any float type."""

    exp = unary("e to the power x.", FLOATS.same, np.exp, f.exp, "Exp")
    exp2 = unary("2 to the power x.", FLOATS.same, np.exp2, f.exp2)
    expm1 = unary("exp(x) - 1, exact near 0.", FLOATS.same, np.expm1, f.expm1)
    log = unary("The natural logarithm.", FLOATS.same, np.log, f.log, "Log")
    log2 = unary("The logarithm to base 2.", FLOATS.same, np.log2, f.log2)
    log10 = unary("The logarithm to base 10.", FLOATS.same, np.log10, f.log10)
    log1p = unary("log(1 + x), exact near 0.", FLOATS.same, np.log1p, f.log1p)
    sqrt = unary("The square root.", FLOATS.same, np.sqrt, f.sqrt, "Sqrt")
    rsqrt = unary("1 / sqrt(x).", FLOATS.same, lambda x: 1 / np.sqrt(x), f.rsqrt)
    reciprocal = unary("1 / x.", FLOATS.same, lambda x: 1 / x, lambda x: 1 / x, "Reciprocal")
    sin = unary("The sine.", FLOATS.same, np.sin, f.sin, "Sin")
    cos = unary("The cosine.", FLOATS.same, np.cos, f.cos, "Cos")
    tan = unary("The tangent.", FLOATS.same, np.tan, f.tan, "Tan")
    asin = unary("The inverse sine.", FLOATS.same, np.arcsin, f.asin, "Asin")
    acos = unary("The inverse cosine.", FLOATS.same, np.arccos, f.acos, "Acos")
    atan = unary("The inverse tangent.", FLOATS.same, np.arctan, f.atan, "Atan")
    sinh = unary("The hyperbolic sine.", FLOATS.same, np.sinh, f.sinh, "Sinh")
    cosh = unary("The hyperbolic cosine.", FLOATS.same, np.cosh, f.cosh, "Cosh")
    tanh = unary("The hyperbolic tangent.", FLOATS.same, np.tanh, f.tanh, "Tanh")
    asinh = unary("The inverse hyperbolic sine.", FLOATS.same, np.arcsinh, f.asinh, "Asinh")
    acosh = unary("The inverse hyperbolic cosine.", FLOATS.same, np.arccosh, f.acosh, "Acosh")
    atanh = unary("The inverse hyperbolic tangent.", FLOATS.same, np.arctanh, f.atanh, "Atanh")
    erf = unary("The error function.", FLOATS.same, _erf, f.erf, "Erf")
    sigmoid = unary("1 / (1 + exp(-x)).", FLOATS.same, _sigmoid, f.sigmoid, "Sigmoid")
    silu = unary("x * sigmoid(x).", FLOATS.same, lambda x: x * _sigmoid(x), lambda x: x * f.sigmoid(x))
    softplus = unary("log(1 + exp(x)).", FLOATS.same, _softplus, f.softplus, "Softplus")
    softsign = unary(
        "x / (1 + abs(x)).", FLOATS.same, lambda x: x / (1 + np.abs(x)), lambda x: x / (f.absolute(x) + 1), "Softsign"
    )
    mish = unary(
        "x * tanh(softplus(x)).",
        FLOATS.same,
        lambda x: x * np.tanh(_softplus(x)),
        lambda x: x * f.tanh(f.softplus(x)),
        "Mish",
    )
    hard_swish = unary(
        "x * hard_sigmoid(x, 1/6, 1/2).",
        FLOATS.same,
        lambda x: x * _hard_sigmoid(HardSigmoid(1 / 6, 0.5), x),
        lambda x: x * f.hard_sigmoid(x, alpha=1 / 6, beta=0.5),
        "HardSwish",
    )
    floor = unary("The next integer below.", FLOATS.same, np.floor, f.floor, "Floor")
    ceil = unary("The next integer above.", FLOATS.same, np.ceil, f.ceil, "Ceil")
    round = unary("The nearest integer, the even one of two.", FLOATS.same, np.rint, f.rounded, "Round")
    trunc = unary("The integer part.", FLOATS.same, np.trunc, f.trunc)
    negative = unary("-x, of any type of numbers.", NUMBERS.same, np.negative, lambda x: -x, "Neg")
    abs = unary("The absolute value, of any type of numbers.", NUMBERS.same, np.abs, f.absolute, "Abs")
    sign = unary("-1, 0 or 1, of any type of numbers.", NUMBERS.same, np.sign, f.sign, "Sign")
    relu = unary("max(x, 0), of any type of numbers.", NUMBERS.same, _relu, f.positive, "Relu")
    bitwise_not = unary(
        "All bits inverted, of integers or bools.", _BITS.same, np.bitwise_not, f.bits(BitNot, Not), "BitwiseNot"
    )
    logical_not = unary("Whether x is false, of bools.", BOOLS.same, np.logical_not, Not, "Not")
    isnan = unary("Whether x is not a number, as bools.", _test, np.isnan, f.isnan, "IsNaN")
    isinf = unary("Whether x is infinite, as bools.", _test, np.isinf, f.isinf)

    @operator(
        _same,
        lambda attrs, x: x,
        formula("identity", lambda x: x),
        is_view=True,
        onnx=Spelling("Identity"),
    )
    def identity(self, x: Operand) -> Call:
        """x, of any type."""
        return self.call("identity", x)

    @operator(
        _cast_type,
        _cast,
        Lowering("elementwise.cast", said=("dtype",), formula=lambda x: x),
        attrs=Cast,
    )
    def cast(self, x: Operand, dtype: DType) -> Call:
        """The elements in another type. Floats become integers by truncation and saturation; nan becomes 0."""
        return self.call("cast", x, attrs=Cast(dtype))

    @operator(_bitcast_type, _bitcast, Lowering("elementwise.bitcast", said=("dtype",)), attrs=Cast)
    def bitcast(self, x: Operand, dtype: DType) -> Call:
        """The same bits as elements of another type of the same width; 16-bit floats are not supported."""
        return self.call("bitcast", x, attrs=Cast(dtype))

    @operator(_clip_type, _clip, formula("clip", f.clip), attrs=Clip)
    def clip(self, x: Operand, low: float | int | None = None, high: float | int | None = None) -> Call:
        """The elements clamped to `low` .. `high`, of any type of numbers; None means no limit."""
        return self.call("clip", x, attrs=Clip(low, high))

    @operator(
        FLOATS.same,
        _leaky_relu,
        formula("leaky_relu", f.leaky_relu),
        attrs=Alpha,
        onnx=_alpha("LeakyRelu", 0.01),
    )
    def leaky_relu(self, x: Operand, alpha: float = 0.01) -> Call:
        """x, or alpha * x where x is negative."""
        return self.call("leaky_relu", x, attrs=Alpha(alpha))

    @operator(FLOATS.same, _elu, formula("elu", f.elu), attrs=Alpha, onnx=_alpha("Elu", 1.0))
    def elu(self, x: Operand, alpha: float = 1.0) -> Call:
        """x, or alpha * (exp(x) - 1) where x is negative."""
        return self.call("elu", x, attrs=Alpha(alpha))

    @operator(FLOATS.same, _celu, formula("celu", f.celu), attrs=Alpha, onnx=_alpha("Celu", 1.0))
    def celu(self, x: Operand, alpha: float = 1.0) -> Call:
        """max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)."""
        return self.call("celu", x, attrs=Alpha(alpha))

    @operator(
        FLOATS.same,
        _selu,
        formula("selu", f.selu),
        attrs=Selu,
        onnx=Spelling(
            "Selu",
            lambda node: Selu(
                node.number("alpha", 1.67326319217681884765625), node.number("gamma", 1.05070102214813232421875)
            ),
        ),
    )
    def selu(self, x: Operand, alpha: float = Selu().alpha, gamma: float = Selu().gamma) -> Call:
        """gamma * x, or gamma * alpha * (exp(x) - 1) where x is not positive."""
        return self.call("selu", x, attrs=Selu(alpha, gamma))

    @operator(
        FLOATS.same,
        _gelu,
        formula("gelu", f.gelu),
        attrs=Gelu,
        onnx=Spelling("Gelu", lambda node: Gelu(node.text("approximate", "none") == "tanh")),
    )
    def gelu(self, x: Operand, *, approximate: bool = False) -> Call:
        """x * P(X <= x) for X of the standard normal distribution, by erf, or approximately by tanh."""
        return self.call("gelu", x, attrs=Gelu(approximate))

    @operator(
        FLOATS.same,
        _hard_sigmoid,
        formula("hard_sigmoid", f.hard_sigmoid),
        attrs=HardSigmoid,
        onnx=Spelling("HardSigmoid", lambda node: HardSigmoid(node.number("alpha", 0.2), node.number("beta", 0.5))),
    )
    def hard_sigmoid(self, x: Operand, alpha: float = 0.2, beta: float = 0.5) -> Call:
        """max(0, min(1, alpha * x + beta))."""
        return self.call("hard_sigmoid", x, attrs=HardSigmoid(alpha, beta))

    def dropout(self, x: Operand) -> Call:
        """x: nothing is dropped outside of training."""
        return self.identity(x)
