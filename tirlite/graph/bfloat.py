"""Converts numbers to the bits of the bfloat16 next to them, and back: NumPy has no such type."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def bfloat_bits(array: Array) -> Array:
    """The bits of the bfloat16 next to each f32, the even one of two as near."""
    bits = array.view(np.uint32)
    up = (bits >> 16 & 1) + np.uint32(0x7FFF)
    return np.where(np.isnan(array), np.uint32(0x7FC0), bits + up >> 16).astype(np.uint16)


def bfloat_values(bits: Array) -> Array:
    """The numbers that these bits are, as f32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)
