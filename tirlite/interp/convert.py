"""Gives the conversion between two types, as `Cast` means it."""

from __future__ import annotations

from math import isinf, isnan
from typing import Any

from tirlite.interp.bfloat import is_bfloat, lanewise, to_bfloat
from tirlite.ir import DType
from tirlite.ir.arithmetic import Function


def conversion(source: DType, target: DType) -> Function:
    """What takes a value of type `source` to type `target`.

    To bool: whether it differs from zero. Float to integer: towards zero, saturated, nan to 0. Integers wrap, and
    what becomes a float is rounded to nearest even.
    """
    if target.is_bool:
        return lambda value: value != 0
    if source.is_float and target.is_integer:
        return lanewise(lambda value: saturated(value, target), target)
    if is_bfloat(target):
        return to_bfloat
    item = target.numpy

    def convert(value: Any) -> Any:
        return value.astype(item)

    return convert


def saturated(value: float, target: DType) -> int:
    """The integer next to `value` towards zero, within the range of `target`; 0 for nan."""
    if isnan(value):
        return 0
    if isinf(value):
        return target.max if value > 0 else target.min
    return min(max(int(value), target.min), target.max)
