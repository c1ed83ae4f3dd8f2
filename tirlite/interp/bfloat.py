"""bfloat16 in NumPy, which has no such type: arrays hold its 16 bits, registers the f32 of the same value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tirlite.ir import DType, TypeCode, bf16, rounded
from tirlite.ir.arithmetic import Function

_DIGITS = 16  # bits of an f32 that a bfloat16 lacks


def is_bfloat(dtype: DType) -> bool:
    return dtype.code is TypeCode.BFLOAT


def item_type(dtype: DType) -> np.dtype[Any]:
    """The NumPy type of a lane in a register."""
    return np.dtype(np.float32) if is_bfloat(dtype) else dtype.numpy


def from_bits(bits: Any) -> Any:
    """The values, as f32, of elements of an array."""
    return (bits.astype(np.uint32) << _DIGITS).view(np.float32)


def to_bits(values: Any) -> Any:
    """What an array holds for values that are bfloat16 already."""
    return (values.view(np.uint32) >> _DIGITS).astype(np.uint16)


def nearest(value: int | float) -> float:
    """The bfloat16 next to a number, the even one of two as near; the number is rounded once."""
    if isinstance(value, int) and abs(value) >= 1 << 53:
        # The digits that a Python float lacks are gathered in the last that it has.
        value = (value >> 11 | ((value & 0x7FF) != 0)) << 11
    return rounded(float(value), bf16)


def to_bfloat(values: Any) -> Any:
    """Numbers of any type as bfloat16."""
    if values.dtype == np.float32:
        return _of_single(values)
    if not values.ndim:
        return np.float32(nearest(values.item()))
    return np.array([nearest(value) for value in values.tolist()], np.float32)


def _of_single(values: Any) -> Any:
    """f32 as bfloat16: half of the last digit is added, or a little less where that one is even."""
    bits = values.view(np.uint32)
    nearest_bits = (bits + (0x7FFF + (bits >> _DIGITS & 1))) & 0xFFFF0000
    is_nan, quiet = values != values, values + values
    if not values.ndim:
        return quiet if is_nan else nearest_bits.view(np.float32)
    return np.where(is_nan, quiet, nearest_bits.view(np.float32))


def in_bfloat(function: Callable[..., Any]) -> Callable[..., Any]:
    """An operation on f32, its result rounded once more: bools and bfloat16 stay what they are."""

    def apply(*values: Any) -> Any:
        result = function(*values)
        return to_bfloat(result) if result.dtype == np.float32 else result

    return apply


def lanewise(function: Function, dtype: DType) -> Function:
    """A function of Python numbers, made to take and give values; its result is converted to `dtype`."""
    item = item_type(dtype)
    scalar = item.type

    def apply(*values: Any) -> Any:
        if not values[0].ndim:
            return scalar(function(*(value.item() for value in values)))
        return np.array([function(*lanes) for lanes in zip(*(v.tolist() for v in values), strict=True)], item)

    return apply
