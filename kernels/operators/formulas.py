"""Writes element-wise operators as expressions of their operands: one function for each operator, by its name.

Half-precision operands come in widened to f32, and the value is rounded once, when it is stored. What is used more than
once is a variable or a load, which costs nothing to repeat.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log, pi, sqrt

from tirlite.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BitAnd,
    BitNot,
    BitOr,
    BitXor,
    Call,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    LetExpr,
    Max,
    Min,
    Mul,
    Not,
    Op,
    Or,
    Select,
    ShiftLeft,
    ShiftRight,
    Sub,
    TruncDiv,
    TruncMod,
    Var,
    bool_,
    const,
)

Formula = Callable[..., Expr]


def function(op: Op) -> Formula:
    """An elementary function of the kernel language."""
    return lambda x: Call(x.dtype, op, (x,))


exp, expm1, log1p, tanh, erf, root, trunc, absolute, logarithm, sigmoid = map(
    function,
    (Op.EXP, Op.EXPM1, Op.LOG1P, Op.TANH, Op.ERF, Op.SQRT, Op.TRUNC, Op.ABS, Op.LOG, Op.SIGMOID),
)


def number(value: float, like: Expr) -> Expr:
    """A constant of the type of another value."""
    return const(value if like.dtype.is_float else int(value), like.dtype)


def named(value: Expr, body: Callable[[Expr], Expr]) -> Expr:
    """`body(value)`, where the value is computed once."""
    var = Var("part", value.dtype)
    return LetExpr(var, value, body(var))


def positive(x: Expr) -> Expr:
    return Max(x, number(0, x))


def sign(x: Expr) -> Expr:
    below = number(-1, x) if x.dtype.is_float or x.dtype.is_signed else x
    return Select(x > 0, number(1, x), Select(x < 0, below, x))


def asinh(x: Expr) -> Expr:
    size = absolute(x)
    near = log1p(size + size * size / (root(size * size + 1) + 1))
    return named(Select(size > 1e9, logarithm(size) + log(2), near), lambda value: Select(x < 0, -value, value))


def acosh(x: Expr) -> Expr:
    near = log1p((x - 1) + root((x - 1) * 2 + (x - 1) * (x - 1)))
    return Select(x > 1e9, logarithm(x) + log(2), near)


def atanh(x: Expr) -> Expr:
    half = log1p(absolute(x) * 2 / (1 - absolute(x))) * 0.5
    return named(half, lambda value: Select(x < 0, -value, value))


def softplus(x: Expr) -> Expr:
    return positive(x) + log1p(exp(-absolute(x)))


def gelu(x: Expr, *, approximate: bool = False) -> Expr:
    if approximate:
        return x * (tanh((x + x * x * x * 0.044715) * sqrt(2 / pi)) + 1) * 0.5
    return x * (erf(x / sqrt(2)) + 1) * 0.5


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


def power(x: Expr, y: Expr) -> Expr:
    """Of integers by squaring, modulo the width; a negative exponent leaves 1 / x cut to an integer."""
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
    """A shift that moves all bits out where it is by the width or more."""

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


def differ(x: Expr, y: Expr) -> Expr:
    return NE(x, y)


UNARY: dict[str, Formula] = {
    **{
        op.label: function(op)
        for op in (
            *(
                Op.EXP,
                Op.EXP2,
                Op.EXPM1,
                Op.LOG,
                Op.LOG2,
                Op.LOG10,
                Op.LOG1P,
                Op.SQRT,
                Op.RSQRT,
                Op.SIN,
                Op.COS,
                Op.TAN,
            ),
            *(Op.ASIN, Op.ACOS, Op.ATAN, Op.SINH, Op.COSH, Op.TANH, Op.ERF, Op.SIGMOID),
            *(Op.FLOOR, Op.CEIL, Op.ROUND, Op.TRUNC, Op.ABS),
        )
    },
    "identity": lambda x: x,
    "negative": lambda x: -x,
    "sign": sign,
    "relu": positive,
    "reciprocal": lambda x: 1 / x,
    "asinh": asinh,
    "acosh": acosh,
    "atanh": atanh,
    "silu": lambda x: x * sigmoid(x),
    "softplus": softplus,
    "softsign": lambda x: x / (absolute(x) + 1),
    "mish": lambda x: x * tanh(softplus(x)),
    "hard_sigmoid": hard_sigmoid,
    "hard_swish": lambda x: x * hard_sigmoid(x, alpha=1 / 6, beta=0.5),
    "leaky_relu": leaky_relu,
    "elu": elu,
    "celu": celu,
    "selu": selu,
    "gelu": gelu,
    "clip": clip,
    "bitwise_not": bits(BitNot, Not),
    "logical_not": Not,
    "isnan": lambda x: Call(bool_, Op.ISNAN, (x,)),
    "isinf": lambda x: EQ(absolute(x), number(inf, x)),
}

BINARY: dict[str, Formula] = {
    "add": Add,
    "subtract": Sub,
    "multiply": Mul,
    "divide": Div,
    "power": power,
    "maximum": Max,
    "minimum": Min,
    "floor_divide": FloorDiv,
    "floor_mod": FloorMod,
    "trunc_divide": trunc_divide,
    "trunc_mod": trunc_mod,
    "prelu": lambda x, slope: Select(x < 0, x * slope, x),
    "less": LT,
    "less_equal": LE,
    "greater": GT,
    "greater_equal": GE,
    "equal": EQ,
    "not_equal": NE,
    "logical_and": And,
    "logical_or": Or,
    "logical_xor": differ,
    "bitwise_and": bits(BitAnd, And),
    "bitwise_or": bits(BitOr, Or),
    "bitwise_xor": bits(BitXor, differ),
    "shift_left": shift(ShiftLeft),
    "shift_right": shift(ShiftRight),
}

FORMULAS: dict[str, Formula] = {**UNARY, **BINARY, "where": Select}
