"""Defines the form of a meaning: it takes attributes and arrays, and gives an array or several.

The attributes hold integers, no dims. Elements of half precision come as f32 and are rounded by the caller; all others
come and leave in their own type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Meaning: TypeAlias = Callable[..., "Array | tuple[Array, ...]"]


def plain(function: Callable[..., Any]) -> Meaning:
    """A NumPy function as the meaning of an operator without attributes."""
    return lambda attrs, *args: np.asarray(function(*args))
