"""The formulas of elementwise operators, as functions of expressions.

Half-precision operands are widened to f32, and the value is rounded once, when it is stored. Operands that are used
more than once are variables or loads, which may be repeated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from math import inf

from tirlite.ir.dtype import DType, bool_, f32, i32
from tirlite.ir.expr import (
    EQ,
    And,
    BitAnd,
    Call,
    Expr,
    FloorMod,
    LetExpr,
    Max,
    Min,
    Select,
    ShiftLeft,
    ShiftRight,
    TruncDiv,
    TruncMod,
    Var,
    const,
)
from tirlite.ir.op import Op

Formula = Callable[..., Expr]


def function(op: Op) -> Formula:
    """An elementary function of the kernel language."""
    return lambda x: Call(x.dtype, op, (x,))


def fast_function(op: Op) -> Formula:
    """The same in its fast form, within 4 ULP: networks spend most of their elementwise time there."""
    return function(op.fast)


exp, exp2, expm1 = map(fast_function, (Op.EXP, Op.EXP2, Op.EXPM1))
log, log2, log10, log1p = map(fast_function, (Op.LOG, Op.LOG2, Op.LOG10, Op.LOG1P))
sqrt, rsqrt, absolute = map(function, (Op.SQRT, Op.RSQRT, Op.ABS))
sin, cos, tan, asin, acos, atan = map(function, (Op.SIN, Op.COS, Op.TAN, Op.ASIN, Op.ACOS, Op.ATAN))
sinh, cosh, tanh, erf, sigmoid = map(fast_function, (Op.SINH, Op.COSH, Op.TANH, Op.ERF, Op.SIGMOID))
floor, ceil, rounded, trunc = map(function, (Op.FLOOR, Op.CEIL, Op.ROUND, Op.TRUNC))


def number(value: float, like: Expr) -> Expr:
    """A constant of the type of another value."""
    return const(value if like.dtype.is_float else int(value), like.dtype)


def named(value: Expr, body: Callable[[Expr], Expr]) -> Expr:
    """`body(value)`, with the value computed once."""
    var = Var("part", value.dtype)
    return LetExpr(var, value, body(var))


def positive(x: Expr) -> Expr:
    return Max(x, number(0, x))


def sign(x: Expr) -> Expr:
    below = number(-1, x) if x.dtype.is_float or x.dtype.is_signed else x
    return Select(x > 0, number(1, x), Select(x < 0, below, x))


def asinh(x: Expr) -> Expr:
    size = absolute(x)
    near = log1p(size + size * size / (sqrt(size * size + 1) + 1))
    return named(Select(size > 1e9, log(size) + math.log(2), near), lambda value: Select(x < 0, -value, value))


def acosh(x: Expr) -> Expr:
    near = log1p((x - 1) + sqrt((x - 1) * 2 + (x - 1) * (x - 1)))
    return Select(x > 1e9, log(x) + math.log(2), near)


def atanh(x: Expr) -> Expr:
    half = log1p(absolute(x) * 2 / (1 - absolute(x))) * 0.5
    return named(half, lambda value: Select(x < 0, -value, value))


def softplus(x: Expr) -> Expr:
    return positive(x) + log1p(exp(-absolute(x)))


def gelu(x: Expr, *, approximate: bool = False) -> Expr:
    if approximate:
        return x * (tanh((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)) + 1) * 0.5
    return x * (erf(x / math.sqrt(2)) + 1) * 0.5


def clip(x: Expr, *, low: float | None = None, high: float | None = None) -> Expr:
    if low is not None:
        x = Max(x, number(low, x))
    return x if high is None else Min(x, number(high, x))


def hard_sigmoid(x: Expr, *, alpha: float = 0.2, beta: float = 0.5) -> Expr:
    return clip(x * alpha + beta, low=0, high=1)


def leaky_relu(x: Expr, *, alpha: float = 0.01) -> Expr:
    return Select(x < 0, x * alpha, x)


def elu(x: Expr, *, alpha: float = 1.0) -> Expr:
    return Select(x < 0, expm1(x) * alpha, x)


def celu(x: Expr, *, alpha: float = 1.0) -> Expr:
    return positive(x) + Min(expm1(x / alpha) * alpha, number(0, x))


def selu(x: Expr, *, alpha: float = 1.6732631921768188, gamma: float = 1.0507009873554805) -> Expr:
    return Select(x > 0, x, expm1(x) * alpha) * gamma


def batch_norm(
    x: Expr, scale: Expr, bias: Expr, mean: Expr, variance: Expr | None = None, *, epsilon: float = 1e-5
) -> Expr:
    factor = scale if variance is None else scale / sqrt(variance + epsilon)
    return (x - mean) * factor + bias


def power(x: Expr, y: Expr) -> Expr:
    """Powers; of integers by squaring, modulo the width, and for negative exponents 1 / x cut to an integer."""
    if x.dtype.is_float:
        return Call(x.dtype, Op.POW, (x, y))
    result = _squarings(x, y, number(1, x), x.dtype.bits)
    if not x.dtype.is_signed:
        return result
    odd = EQ(BitAnd(y, number(1, y)), number(1, y))
    inverse = Select(EQ(x, number(-1, x)), Select(odd, x, number(1, x)), number(0, x))
    return Select(y < 0, Select(EQ(x, number(1, x)), x, inverse), result)


def _squarings(base: Expr, exponent: Expr, result: Expr, bits: int) -> Expr:
    one = number(1, exponent)
    chosen = Select(EQ(BitAnd(exponent, one), one), result * base, result)
    if bits == 1:
        return chosen
    return named(
        chosen,
        lambda product: named(
            base * base,
            lambda square: named(ShiftRight(exponent, one), lambda rest: _squarings(square, rest, product, bits - 1)),
        ),
    )


def trunc_divide(x: Expr, y: Expr) -> Expr:
    return trunc(x / y) if x.dtype.is_float else TruncDiv(x, y)


def trunc_mod(x: Expr, y: Expr) -> Expr:
    if not x.dtype.is_float:
        return TruncMod(x, y)
    return named(FloorMod(absolute(x), absolute(y)), lambda rest: Select(x < 0, -rest, rest))


def shift(kind: type[ShiftLeft] | type[ShiftRight]) -> Formula:
    """A shift that moves all bits out if it is by the width or more."""

    def value(x: Expr, y: Expr) -> Expr:
        last = number(x.dtype.bits - 1, y)
        inside = And(y >= 0, y <= last) if y.dtype.is_signed else y <= last
        emptied = number(0, x)
        if kind is ShiftRight and x.dtype.is_signed:
            emptied = Select(x < 0, number(-1, x), emptied)
        return Select(inside, kind(x, clip(y, low=0, high=x.dtype.bits - 1)), emptied)

    return value


def bits(kind: type[Expr], logical: Formula) -> Formula:
    """An operation on bits, which on bools is one of logic."""
    return lambda x, *y: logical(x, *y) if x.dtype.is_bool else kind(x, *y)


def isnan(x: Expr) -> Expr:
    return Call(bool_, Op.ISNAN, (x,))


def isinf(x: Expr) -> Expr:
    return EQ(absolute(x), number(inf, x))


def quantized(x: Expr, scale: Expr, zero: Expr | None = None, *, dtype: DType, axis: int = 1) -> Expr:
    """x / scale rounded to nearest even, plus a zero point, saturated."""
    rounded = Call(f32, Op.ROUND, (x.astype(f32) / scale.astype(f32),))
    return (rounded if zero is None else rounded + zero.astype(f32)).astype(dtype)


def dequantized(x: Expr, scale: Expr, zero: Expr | None = None, *, dtype: DType, axis: int = 1) -> Expr:
    """(x - zero point) * scale."""
    distance = x.astype(i32) if zero is None else x.astype(i32) - zero.astype(i32)
    return distance.astype(f32) * scale.astype(f32)


def with_dequantized(x: Expr, small: Expr, scale: Expr, zero: Expr) -> Expr:
    """x + (small - zero point) * scale."""
    return x + dequantized(small, scale, zero, dtype=f32)


def requantized(total: Expr, factor: Expr, zero: Expr, *, dtype: DType) -> Expr:
    """total * factor rounded to nearest even, plus a zero point, saturated."""
    rounded = Call(f32, Op.ROUND, (total.astype(f32) * factor.astype(f32),))
    return (rounded + zero.astype(f32)).astype(dtype)
