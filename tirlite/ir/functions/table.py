"""An operation and a type in, the formula that computes it out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tirlite.ir.dtype import DType, f32, f64
from tirlite.ir.formula import Term
from tirlite.ir.functions import (
    error_function,
    exponential,
    inverse,
    logarithm,
    root,
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
    Op.RSQRT: root.rsqrt,
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
}


def formula_of(op: Op, dtype: DType) -> Formula | None:
    """The formula of `op` on values of type f32 or f64; None for what the machine does itself.

    f32 goes by way of f64, whose result is rounded once more, unless it has a formula of its own.
    """
    if dtype == f32 and op in _OF_F32:
        return _OF_F32[op]
    formula = _FORMULAS.get(op)
    if formula is None or dtype == f64:
        return formula

    def in_double(*values: Term) -> Term:
        return formula(*(value.to(f64) for value in values)).to(dtype)

    return in_double
