"""Decides whether arrays share elements, and whether one has an element at two places: exactly, by their strides."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.exceptions import TooHardError

Array: TypeAlias = npt.NDArray[Any]

# Deciding takes exponential time in the number of axes. Arrays of which this much work does not tell are said to
# overlap; slices of one array take a few steps.
_MOST_WORK = 1_000_000


def share_elements(one: Array, other: Array) -> bool:
    """Whether two arrays have a byte in common. `x[::2]` and `x[1::2]` have none."""
    if not np.may_share_memory(one, other):
        return False
    try:
        return np.shares_memory(one, other, max_work=_MOST_WORK)  # type: ignore[arg-type]
    except TooHardError:
        return True


def meets_itself(array: Array) -> bool:
    """Whether different indices lead to one byte, as along an axis that is broadcast."""
    axes = sorted((abs(step), extent) for step, extent in zip(array.strides, array.shape, strict=True) if extent != 1)
    if not array.size or not axes:
        return False
    if not axes[0][0]:
        return True
    reach = array.itemsize
    for step, extent in axes:
        if step < reach:
            return _meets_itself(array)
        reach += step * (extent - 1)
    return False


def _meets_itself(array: Array) -> bool:
    """As `meets_itself`, for axes that none encloses.

    Two indices differ along some axis first, and are equal along those before it: where they are does not matter then,
    nor how large the smaller index of the two is along that axis.
    """
    for axis in range(array.ndim):
        rest = array[(0,) * axis]
        if share_elements(rest[:1], rest[1:]):
            return True
    return False
