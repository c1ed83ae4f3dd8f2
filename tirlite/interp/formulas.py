"""Turns a formula into the function of NumPy values that it computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tirlite.ir import DType, Op
from tirlite.ir.arithmetic import FUNCTIONS, Function
from tirlite.ir.formula import Kind, Term
from tirlite.ir.functions.table import Formula
from tirlite.record import record

_CALLS: dict[Op, Function] = {Op.ROUND: np.rint, Op.SQRT: np.sqrt, Op.ABS: np.abs}


@record
class ArrayMachine:
    """Carries out a formula on arrays of any length."""

    def constant(self, value: int | float, dtype: DType) -> Any:
        return dtype.numpy.type(value)

    def apply(self, kind: Kind, dtype: DType, *items: Any) -> Any:
        return FUNCTIONS[kind](*items)

    def call(self, op: Op, dtype: DType, item: Any) -> Any:
        return _CALLS[op](item)

    def fused(self, a: Any, b: Any, c: Any) -> Any:
        return fused_singles(a, b, c)

    def select(self, dtype: DType, condition: Any, yes: Any, no: Any) -> Any:
        return np.where(condition, yes, no)

    def convert(self, source: DType, target: DType, item: Any) -> Any:
        return item.astype(target.numpy)

    def reinterpret(self, source: DType, target: DType, item: Any) -> Any:
        return item.view(target.numpy)

    def lookup(self, table: tuple[float, ...], item: Any) -> Any:
        return _array(table)[item]


def fused_singles(a: Any, b: Any, c: Any) -> Any:
    """`a * b + c` of f32, rounded once: in f64, where the product is exact, with the sum rounded to odd."""
    product, addend = np.multiply(a, b, dtype=np.float64), np.asarray(c, np.float64)
    near = np.asarray(product + addend)
    moved = near - product
    rest = (product - (near - moved)) + (addend - moved)
    bits = near.view(np.int64)
    is_even = np.isfinite(near) & (rest != 0) & (bits & 1 == 0)
    away = np.where((rest > 0) == (near > 0), 1, -1)
    return (bits + np.where(is_even, away, 0)).view(np.float64).astype(np.float32)


def _array(table: tuple[float, ...]) -> npt.NDArray[np.float64]:
    return np.array(table)


def apply_formula(formula: Formula, dtype: DType) -> Function:
    """The formula as a function of values of type `dtype`."""
    machine = ArrayMachine()

    def apply(*values: Any) -> Any:
        result: Any = formula(*(Term(machine, dtype, np.atleast_1d(value)) for value in values)).item
        return result if values[0].ndim else result[0]

    return apply
