"""Tells what each type of binary or unary node does to NumPy values.

Values are NumPy scalars, or arrays of lanes, of exactly the node's type. NumPy's integers wrap, its `//` and `%` floor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from tirlite.interp.bfloat import in_bfloat, is_bfloat, item_type
from tirlite.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    Binary,
    BitAnd,
    BitNot,
    BitOr,
    BitXor,
    Compare,
    Div,
    DType,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mul,
    Neg,
    Not,
    ShiftLeft,
    ShiftRight,
    Sub,
    TruncDiv,
    TruncMod,
    Unary,
)

# Takes and gives NumPy scalars or arrays of lanes.
Function: TypeAlias = Callable[..., Any]


def lanewise(function: Function, dtype: DType) -> Function:
    """A function of Python numbers, made to take and give values; its result is converted to `dtype`."""
    item = item_type(dtype)
    scalar = item.type

    def apply(*values: Any) -> Any:
        if not values[0].ndim:
            return scalar(function(*(value.item() for value in values)))
        return np.array([function(*lanes) for lanes in zip(*(v.tolist() for v in values), strict=True)], item)

    return apply


def least(a: Any, b: Any) -> Any:
    """`a` where `a < b` or `a` is nan, else `b`."""
    return np.where((a < b) | (a != a), a, b)[()] if a.ndim else a if a < b or a != a else b


def greatest(a: Any, b: Any) -> Any:
    """`a` where `a > b` or `a` is nan, else `b`."""
    return np.where((a > b) | (a != a), a, b)[()] if a.ndim else a if a > b or a != a else b


def _truncated_quotient(a: Any, b: Any) -> Any:
    floor = np.floor_divide(a, b)
    rounded_up = (floor * b != a) & ((a < 0) != (b < 0))
    return floor + rounded_up.astype(a.dtype)


def _truncated_remainder(a: Any, b: Any) -> Any:
    return a - b * _truncated_quotient(a, b)


# What each type of node does to its operands; see `operation`.
FUNCTIONS: dict[type[Unary] | type[Binary] | type[Compare], Function] = {
    Neg: np.negative,
    BitNot: np.invert,
    Not: np.logical_not,
    Add: np.add,
    Sub: np.subtract,
    Mul: np.multiply,
    Div: np.true_divide,
    FloorDiv: np.floor_divide,
    FloorMod: np.remainder,
    TruncDiv: _truncated_quotient,
    TruncMod: _truncated_remainder,
    Min: least,
    Max: greatest,
    BitAnd: np.bitwise_and,
    BitOr: np.bitwise_or,
    BitXor: np.bitwise_xor,
    ShiftLeft: np.left_shift,
    ShiftRight: np.right_shift,
    EQ: np.equal,
    NE: np.not_equal,
    LT: np.less,
    LE: np.less_equal,
    GT: np.greater,
    GE: np.greater_equal,
}


def operation(kind: type[Unary] | type[Binary] | type[Compare], dtype: DType) -> Function:
    """What `kind` does to operands of type `dtype`."""
    return in_bfloat(FUNCTIONS[kind]) if is_bfloat(dtype) else FUNCTIONS[kind]
