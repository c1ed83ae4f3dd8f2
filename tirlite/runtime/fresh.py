"""Allocates arrays with the alignment that parameters need."""

from __future__ import annotations

import ctypes
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tirlite.late import LateModule

if TYPE_CHECKING:
    import numpy.typing as npt

    from tirlite.runtime import messages, signature_text
    from tirlite.runtime.signature import ArrayParam, Signature

    Array: TypeAlias = npt.NDArray[Any]
else:
    messages = LateModule("tirlite.runtime.messages")
    signature_text = LateModule("tirlite.runtime.signature_text")


# Getting an array's address from ctypes through its buffer takes a fifth of the time that NumPy takes.
_NO_BYTES = ctypes.c_char * 0
# Every allocation has this alignment.
_ALWAYS = 8


def fresh_array(signature: Signature, param: ArrayParam, shape: tuple[int, ...], *, zeros: bool) -> Array:
    """An array for an output that was left out, filled with 0 or uninitialised."""
    if min(shape, default=0) < 0:
        text = signature_text.shape_text(param.extents)
        raise messages.NegativeOutput(signature.name, param.name, str(shape), text).error()
    try:
        return aligned_array(shape, param, zeros=zeros)
    except (MemoryError, OverflowError, ValueError):
        size = param.dtype.itemsize * prod(shape)
        raise messages.NoOutput(signature.name, size, param.name).error() from None


def address_of(array: Array) -> int:
    """The address of a writable array."""
    buffer: Any = array
    return ctypes.addressof(_NO_BYTES.from_buffer(buffer))


def aligned_array(shape: tuple[int, ...], param: ArrayParam, *, zeros: bool = False) -> Array:
    """A fresh array with the parameter's alignment. Raises MemoryError."""
    return array_at(param.align, shape, param.dtype, zeros=zeros)


def array_at(align: int, shape: tuple[int, ...], dtype: npt.DTypeLike, *, zeros: bool = False) -> Array:
    """A fresh array with this alignment in bytes. Raises MemoryError."""
    make = np.zeros if zeros else np.empty
    if align <= _ALWAYS:
        return make(shape, dtype)
    kind = np.dtype(dtype)
    room: Array = make(prod(shape) * kind.itemsize + align, np.uint8)
    return np.ndarray(shape, kind, room, -address_of(room) % align)
