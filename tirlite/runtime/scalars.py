"""Converts the value given for a scalar parameter to the number that the kernel takes."""

from __future__ import annotations

from math import isfinite

import numpy as np

from tirlite.diag.error import an
from tirlite.ir import DType, bf16, f16, f32, f64, rounded
from tirlite.runtime.messages import ArgumentRange, ArgumentType
from tirlite.show import shown

_LARGEST = {
    f16: 65504.0,
    bf16: (2.0 - 2.0**-7) * 2.0**127,
    f32: float(np.finfo(np.float32).max),
    f64: float(np.finfo(np.float64).max),
}


def scalar_value(name: str, dtype: DType, given: object) -> int | float:
    """`given`, a number of Python or NumPy, as one that `dtype` can represent.

    A float is accepted only for a float parameter, and is rounded to its type. Raises CallTypeError or CallValueError.
    """
    kind = type(given)
    if isinstance(given, np.ndarray) and given.ndim == 0:
        given = given[()]
    if isinstance(given, np.generic):
        given = given.item()
    if isinstance(given, (bool, int)) or (dtype.is_float and isinstance(given, float)):
        return _in_range(name, dtype, given)
    hint = f"write int({name}) to cut off its fraction" if isinstance(given, float) else ""
    if isinstance(given, np.ndarray):
        hint = "of what is given by position, inputs take the first: give an output by its name"
    wanted = {True: "a number"}.get(dtype.is_float, "True or False" if dtype.is_bool else "an integer")
    raise ArgumentType(name, f"{wanted} ({dtype})", an(kind.__name__), hint).error()


def _in_range(name: str, dtype: DType, given: int | float) -> int | float:
    if not dtype.is_float:
        if dtype.min <= given <= dtype.max:
            return given
        raise ArgumentRange(name, shown(given), str(dtype), str(dtype.min), str(dtype.max)).error()
    largest = _LARGEST[dtype]
    if isinstance(given, float) and not isfinite(given):
        return given
    # Stricter than rounding, by which a number slightly above the largest would still become the largest.
    if -largest <= given <= largest:
        return float(given) if dtype.bits > 16 else rounded(float(given), dtype)
    raise ArgumentRange(name, shown(given), str(dtype), str(-largest), str(largest)).error()
