"""A math operation and a type in, the function on values of that type out."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from tirlite.interp.arithmetic import Function, lanewise
from tirlite.interp.bfloat import in_bfloat, is_bfloat, nearest
from tirlite.ir import DType, Op, bf16, f32

_NUMPY: dict[Op, Function] = {
    Op.ABS: np.abs,
    Op.SQRT: np.sqrt,
    Op.EXP: np.exp,
    Op.EXP2: np.exp2,
    Op.EXPM1: np.expm1,
    Op.LOG: np.log,
    Op.LOG2: np.log2,
    Op.LOG10: np.log10,
    Op.LOG1P: np.log1p,
    Op.SIN: np.sin,
    Op.COS: np.cos,
    Op.TAN: np.tan,
    Op.ASIN: np.arcsin,
    Op.ACOS: np.arccos,
    Op.ATAN: np.arctan,
    Op.ATAN2: np.arctan2,
    Op.SINH: np.sinh,
    Op.COSH: np.cosh,
    Op.TANH: np.tanh,
    Op.POW: np.power,
    Op.FLOOR: np.floor,
    Op.CEIL: np.ceil,
    Op.ROUND: np.rint,
    Op.TRUNC: np.trunc,
    Op.ISNAN: np.isnan,
}


def _in_double(function: Function, dtype: DType) -> Function:
    """`function` computed in f64 and rounded once."""
    item = dtype.numpy

    def apply(value: Any) -> Any:
        return function(value.astype(np.float64)).astype(item)

    return apply


def _rsqrt(value: Any) -> Any:
    return 1.0 / np.sqrt(value)


def _sigmoid(value: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-value))


def math_function(op: Op, dtype: DType) -> Function:
    """What `op` does to values of type `dtype`."""
    if is_bfloat(dtype):
        return _of_bfloat(op)
    if op is Op.FMA:
        return lanewise(lambda a, b, c: fused(a, b, c, narrow=dtype.bits < 64), dtype)
    if op is Op.ERF:
        return lanewise(math.erf, dtype)
    if op is Op.RSQRT:
        return _in_double(_rsqrt, dtype)
    if op is Op.SIGMOID:
        return _in_double(_sigmoid, dtype)
    return _NUMPY[op]


def _of_bfloat(op: Op) -> Function:
    """In f32, rounded once more; a fused product from f64, as f32 would round it wrongly."""
    if op is Op.FMA:
        return lanewise(lambda a, b, c: nearest(fused(a, b, c, narrow=True)), bf16)
    return in_bfloat(math_function(op, f32))


def fused(a: float, b: float, c: float, *, narrow: bool) -> float:
    """`a * b + c` rounded once to f64.

    With `narrow` it is rounded to odd, so that rounding the result once more to a narrower type gives the right value.
    """
    if not (math.isfinite(a) and math.isfinite(b)):
        return a * b + c
    if not math.isfinite(c):
        return c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c
    try:
        near = float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
    if not narrow or Fraction(near) == exact or int(np.float64(near).view(np.int64)) & 1:
        return near
    return math.nextafter(near, math.inf if exact > Fraction(near) else -math.inf)
