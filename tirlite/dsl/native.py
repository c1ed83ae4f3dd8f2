"""Finds the address in this process of a C function of ctypes."""

from __future__ import annotations

import ctypes
from _ctypes import CFuncPtr


def is_native(value: object) -> bool:
    """Whether `value` is a C function of ctypes."""
    return isinstance(value, CFuncPtr)


def native_address(function: object) -> int:
    """The address of a C function. It is the caller's matter to keep what lies there alive."""
    assert isinstance(function, CFuncPtr)
    return ctypes.cast(function, ctypes.c_void_p).value or 0
