"""Allocates arrays as aligned as parameters ask for."""

from __future__ import annotations

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


def fresh_array(signature: Signature, param: ArrayParam, shape: tuple[int, ...]) -> Array:
    """An array for an output that was left out."""
    if min(shape, default=0) < 0:
        text = signature_text.shape_text(param.extents)
        raise messages.NegativeOutput(signature.name, param.name, str(shape), text).error()
    try:
        return aligned_array(shape, param)
    except (MemoryError, ValueError):
        size = param.dtype.itemsize * prod(shape)
        raise messages.NoOutput(signature.name, param.name, size).error() from None


def aligned_array(shape: tuple[int, ...], param: ArrayParam) -> Array:
    """A fresh array as aligned as the parameter asks for. Raises MemoryError."""
    plain: Array = np.empty(shape, param.dtype)
    if not plain.ctypes.data % param.align:
        return plain
    room: Array = np.empty(plain.nbytes + param.align, np.uint8)
    first = -room.ctypes.data % param.align
    return room[first : first + plain.nbytes].view(param.dtype).reshape(shape)
