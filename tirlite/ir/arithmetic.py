"""Tells what each type of binary or unary node does to NumPy values.

Values are NumPy scalars, or arrays of lanes, of exactly the node's type. NumPy's integers wrap, its `//` and `%` floor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from tirlite.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    BitAnd,
    BitNot,
    BitOr,
    BitXor,
    Div,
    Expr,
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
)

# Takes and gives NumPy scalars or arrays of lanes.
Function: TypeAlias = Callable[..., Any]


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


# What each type of node does to its operands; but for those of bfloat16.
FUNCTIONS: Mapping[type[Expr], Function] = {
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
