"""Gives the formula that computes an operation on a type."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tirlite.ir.dtype import DType, f32
from tirlite.ir.formula import Term
from tirlite.ir.functions import (
    error_function,
    exponential,
    fast,
    fast_angles,
    fast_single,
    inverse,
    logarithm,
    single,
    single_angles,
    trigonometry,
)
from tirlite.ir.op import Op

Formula: TypeAlias = Callable[..., Term]

_FORMULAS: dict[Op, Formula] = {
    Op.EXP: exponential.exp,
    Op.EXP2: exponential.exp2,
    Op.EXPM1: exponential.expm1,
    Op.SINH: exponential.sinh,
    Op.COSH: exponential.cosh,
    Op.TANH: exponential.tanh,
    Op.SIGMOID: exponential.sigmoid,
    Op.LOG: logarithm.log,
    Op.LOG2: logarithm.log2,
    Op.LOG10: logarithm.log10,
    Op.LOG1P: logarithm.log1p,
    Op.POW: logarithm.power,
    Op.SIN: trigonometry.sin,
    Op.COS: trigonometry.cos,
    Op.TAN: trigonometry.tan,
    Op.ASIN: inverse.asin,
    Op.ACOS: inverse.acos,
    Op.ATAN: inverse.atan,
    Op.ATAN2: inverse.atan2,
    Op.ERF: error_function.erf,
    Op.RSQRT: logarithm.rsqrt,
}
_OF_F32: dict[Op, Formula] = {
    Op.EXP: single.exp,
    Op.EXP2: single.exp2,
    Op.EXPM1: single.expm1,
    Op.SINH: single.sinh,
    Op.COSH: single.cosh,
    Op.TANH: single.tanh,
    Op.SIGMOID: single.sigmoid,
    Op.LOG: single.log,
    Op.LOG2: single.log2,
    Op.LOG10: single.log10,
    Op.LOG1P: single.log1p,
    Op.POW: single.power,
    Op.SIN: single_angles.sin,
    Op.COS: single_angles.cos,
    Op.TAN: single_angles.tan,
    Op.ASIN: single_angles.asin,
    Op.ACOS: single_angles.acos,
    Op.ATAN: single_angles.atan,
    Op.ATAN2: single_angles.atan2,
    Op.ERF: error_function.single_erf,
    Op.RSQRT: single.rsqrt,
}
# Where these are at least 1.3 times as fast; elsewhere the exact function is taken.
_FAST: dict[Op, Formula] = {
    Op.FAST_EXPM1: fast.expm1,
    Op.FAST_SINH: fast.sinh,
    Op.FAST_COSH: fast.cosh,
    Op.FAST_TANH: fast.tanh,
    Op.FAST_SIGMOID: fast.sigmoid,
    Op.FAST_SIN: fast_angles.sin,
    Op.FAST_COS: fast_angles.cos,
    Op.FAST_TAN: fast_angles.tan,
    Op.FAST_ASIN: fast_angles.asin,
    Op.FAST_ACOS: fast_angles.acos,
    Op.FAST_ATAN: fast_angles.atan,
    Op.FAST_ATAN2: fast_angles.atan2,
    Op.FAST_RSQRT: fast.rsqrt,
}
_FAST_OF_F32: dict[Op, Formula] = {
    **_FAST,
    Op.FAST_EXP: fast_single.exp,
    Op.FAST_TANH: fast_single.tanh,
    Op.FAST_SIGMOID: fast_single.sigmoid,
    Op.FAST_EXP2: fast.exp2,
    Op.FAST_LOG: fast.log,
    Op.FAST_LOG2: fast.log2,
    Op.FAST_LOG10: fast.log10,
    Op.FAST_LOG1P: fast.log1p,
    Op.FAST_ERF: error_function.fast_erf,
}


def has_fast(op: Op, dtype: DType) -> bool:
    """Whether `op` has a fast variant for values of type f32 or f64."""
    return op.fast in (_FAST_OF_F32 if dtype == f32 else _FAST)


def formula_of(op: Op, dtype: DType) -> Formula | None:
    """The formula of `op` on values of type f32 or f64; None for what the machine does itself."""
    if op.is_fast:
        chosen = _FAST_OF_F32 if dtype == f32 else _FAST
        return chosen[op] if op in chosen else formula_of(op.exact, dtype)
    return (_OF_F32 if dtype == f32 else _FORMULAS).get(op)
