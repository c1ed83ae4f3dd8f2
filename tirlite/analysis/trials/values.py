"""Evaluates an integer expression at many points, from the values of its variables there.

Arrays have an axis for the points and one for the lanes; either has length 1 where there is no difference along it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tirlite.ir import And, Broadcast, Buffer, Cast, Expr, IntImm, Load, Or, Ramp, Select, Steps, Var, run
from tirlite.ir.arithmetic import FUNCTIONS, Function
from tirlite.ir.checked import bare, is_checked
from tirlite.record import record

Array: TypeAlias = npt.NDArray[Any]


@record
class Cell:
    """What is in a buffer of one element."""

    buffer: Buffer


# Variables and cells by their values, and views by the bytes where they begin in their allocations.
Environment: TypeAlias = "Mapping[Var | Buffer | Cell, Array]"

_FUNCTIONS: Mapping[type[Expr], Function] = {**FUNCTIONS, And: np.logical_and, Or: np.logical_or, Select: np.where}


def constant(value: int, kind: type[np.generic] = np.int64) -> Array:
    """One value for all points and lanes."""
    return np.full((1, 1), value, kind)


def trial_value(expr: Expr, values: Environment) -> Array | None:
    """None where the value depends on memory, on calls, or on a variable that has no value."""
    return run(_value(expr, values))


def _value(expr: Expr, values: Environment) -> Steps[Array | None]:
    if isinstance(expr, Var):
        return values.get(expr)
    if isinstance(expr, Load):
        return values.get(Cell(expr.buffer))
    if not (expr.dtype.is_integer or expr.dtype.is_bool):
        return None
    if isinstance(expr, IntImm):
        return constant(expr.value, expr.dtype.numpy.type)
    if is_checked(expr):
        found: Array | None = yield _value(bare(expr), values)
        return found
    function = _FUNCTIONS.get(type(expr))
    if function is None and not isinstance(expr, Cast | Ramp | Broadcast):
        return None
    operands = []
    for child in expr.children():
        assert isinstance(child, Expr)
        operand = yield _value(child, values)
        if operand is None:
            return None
        operands.append(operand)
    if function is not None:
        result: Array = function(*operands)
        return result
    if isinstance(expr, Ramp):
        steps: Array = operands[0] + operands[1] * np.arange(expr.lanes, dtype=operands[0].dtype)
        return steps
    converted: Array = operands[0].astype(expr.dtype.numpy)
    return converted
