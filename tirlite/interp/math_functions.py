"""Gives the function that computes a math operation on values of a type."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from tirlite.interp.bfloat import in_bfloat, is_bfloat, lanewise, nearest
from tirlite.interp.formulas import apply_formula, fused_singles
from tirlite.ir import DType, Op, bf16, f16, f32
from tirlite.ir.arithmetic import Function
from tirlite.ir.functions import formula_of

_NUMPY: dict[Op, Function] = {
    Op.ABS: np.abs,
    Op.SQRT: np.sqrt,
    Op.FLOOR: np.floor,
    Op.CEIL: np.ceil,
    Op.ROUND: np.rint,
    Op.TRUNC: np.trunc,
    Op.ISNAN: np.isnan,
}


def math_function(op: Op, dtype: DType) -> Function:
    """What `op` does to values of type `dtype`, which may be lanes."""
    scalar = dtype.scalar
    if is_bfloat(dtype):
        return _of_bfloat(op)
    if op is Op.FMA:
        return fused_singles if scalar == f32 else lanewise(lambda *each: fused(*each, narrow=dtype.bits < 64), dtype)
    if scalar == f16:
        return _of_f16(op)
    formula = formula_of(op, scalar)
    return _NUMPY[op] if formula is None else apply_formula(formula, scalar)


def _of_f16(op: Op) -> Function:
    """In f32, rounded once more."""
    function = math_function(op, f32)

    def apply(*values: Any) -> Any:
        result = function(*(value.astype(np.float32) for value in values))
        return result.astype(np.float16) if result.dtype == np.float32 else result

    return apply


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
