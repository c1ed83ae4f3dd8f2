"""The NumPy function that computes each type of binary or unary node.

Values are NumPy scalars, or arrays of lanes, of exactly the node's type. NumPy's integers wrap, its `//` and `%` floor.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from tirlite.ir import expr as e

# From NumPy scalars or arrays of lanes to the same.
Function: TypeAlias = Callable[..., Any]


def least(a: Any, b: Any) -> Any:
    """`a` where `a < b` or `a` is nan, else `b`."""
    return np.where((a < b) | (a != a), a, b)[()] if a.ndim else a if a < b or a != a else b


def greatest(a: Any, b: Any) -> Any:
    """`a` where `a > b` or `a` is nan, else `b`."""
    return np.where((a > b) | (a != a), a, b)[()] if a.ndim else a if a > b or a != a else b


def _truncated_quotient(a: Any, b: Any) -> Any:
    floor = a // b
    rounded_up = (floor * b != a) & ((a < 0) != (b < 0))
    return floor + rounded_up.astype(a.dtype)


def _truncated_remainder(a: Any, b: Any) -> Any:
    return a - b * _truncated_quotient(a, b)


# The function of each type of node, except for bfloat16. On scalars Python's operators take a tenth of the time of
# NumPy's functions.
FUNCTIONS: Mapping[type[e.Expr], Function] = {
    e.Neg: operator.neg,
    e.BitNot: operator.invert,
    e.Not: operator.invert,
    e.Add: operator.add,
    e.Sub: operator.sub,
    e.Mul: operator.mul,
    e.Div: operator.truediv,
    e.FloorDiv: operator.floordiv,
    e.FloorMod: operator.mod,
    e.TruncDiv: _truncated_quotient,
    e.TruncMod: _truncated_remainder,
    e.Min: least,
    e.Max: greatest,
    e.BitAnd: operator.and_,
    e.BitOr: operator.or_,
    e.BitXor: operator.xor,
    e.ShiftLeft: operator.lshift,
    e.ShiftRight: operator.rshift,
    e.EQ: operator.eq,
    e.NE: operator.ne,
    e.LT: operator.lt,
    e.LE: operator.le,
    e.GT: operator.gt,
    e.GE: operator.ge,
}
