"""Allocates arrays as aligned as parameters ask for."""

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


# Asking ctypes for the address of an array through its buffer costs a fifth of asking NumPy.
_NO_BYTES = ctypes.c_char * 0
# Whatever is allocated is aligned so far: as any element needs it.
_ALWAYS = 8


def fresh_array(signature: Signature, param: ArrayParam, shape: tuple[int, ...], *, zeros: bool) -> Array:
    """An array for an output that was left out: of zeros, or of whatever lies in its memory."""
    if min(shape, default=0) < 0:
        text = signature_text.shape_text(param.extents)
        raise messages.NegativeOutput(signature.name, param.name, str(shape), text).error()
    try:
        return aligned_array(shape, param, zeros=zeros)
    except (MemoryError, OverflowError, ValueError):
        size = param.dtype.itemsize * prod(shape)
        raise messages.NoOutput(signature.name, size, param.name).error() from None


def address_of(array: Array) -> int:
    """Where an array that may be written begins."""
    buffer: Any = array
    return ctypes.addressof(_NO_BYTES.from_buffer(buffer))


def aligned_array(shape: tuple[int, ...], param: ArrayParam, *, zeros: bool = False) -> Array:
    """A fresh array as aligned as the parameter asks for. Raises MemoryError."""
    return array_at(param.align, shape, param.dtype, zeros=zeros)


def array_at(align: int, shape: tuple[int, ...], dtype: npt.DTypeLike, *, zeros: bool = False) -> Array:
    """A fresh array that begins at a multiple of so many bytes. Raises MemoryError."""
    make = np.zeros if zeros else np.empty
    if align <= _ALWAYS:
        return make(shape, dtype)
    kind = np.dtype(dtype)
    room: Array = make(prod(shape) * kind.itemsize + align, np.uint8)
    return np.ndarray(shape, kind, room, -address_of(room) % align)
