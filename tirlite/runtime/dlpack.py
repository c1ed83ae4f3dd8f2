"""Sees the bits of bfloat16 arrays of other libraries by DLPack: NumPy has no such type, and takes none from them.

Source: dlpack.h, versions 0 and 1.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

_CPU = 1
_BFLOAT = 4
_READ_ONLY = 1


class _Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("device", ctypes.c_int32),
        ("device_number", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),  # in elements; null for a dense array
        ("first", ctypes.c_uint64),  # in bytes
    )


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


def bfloat_bits(given: Any) -> npt.NDArray[np.uint16]:
    """The elements of a bfloat16 array of another library where they are, as their bits.

    Not to be written to where the library does not say that they may be. Raises BufferError for another type or device.
    """
    capsule, tensor, is_writable = _opened(given)
    if (tensor.device, tensor.code, tensor.bits, tensor.lanes) != (_CPU, _BFLOAT, 16, 1):
        raise BufferError("not bfloat16 in the memory of the processor")
    shape = tuple(tensor.shape[axis] for axis in range(tensor.rank))
    steps = _dense(shape) if not tensor.strides else [tensor.strides[axis] for axis in range(tensor.rank)]
    strides = tuple(2 * step for step in steps)
    if 0 in shape:
        return np.empty(shape, np.uint16)
    reach = [stride * (extent - 1) for stride, extent in zip(strides, shape, strict=True)]
    low, high = sum(min(each, 0) for each in reach), sum(max(each, 0) for each in reach) + 2
    memory = (ctypes.c_char * (high - low)).from_address(tensor.data + tensor.first + low)
    memory.owner = capsule  # which frees the elements at its end
    made: npt.NDArray[np.uint16] = np.ndarray(shape, np.uint16, memory, -low, strides)
    made.flags.writeable = is_writable
    return made


def _opened(given: Any) -> tuple[object, _Tensor, bool]:
    """What the library hands over, the tensor in it, and whether it says that it may be written to."""
    try:
        capsule = given.__dlpack__(max_version=(1, 0))
    except TypeError:
        capsule = given.__dlpack__()
    for name, kind in ((b"dltensor_versioned", _Versioned), (b"dltensor", _Tensor)):
        address = _pointer_of(capsule, name)
        if address:
            whole = kind.from_address(address)
            if isinstance(whole, _Versioned):
                if whole.major != 1:
                    break
                return capsule, whole.tensor, not whole.flags & _READ_ONLY
            return capsule, whole, False
    raise BufferError("a version of DLPack that is not known")


def _pointer_of(capsule: object, name: bytes) -> int | None:
    python = ctypes.pythonapi
    if not ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", python))(
        capsule, name
    ):
        return None
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", python))
    found: int | None = pointer(capsule, name)
    return found


def _dense(shape: tuple[int, ...]) -> list[int]:
    steps, step = [], 1
    for extent in reversed(shape):
        steps.append(step)
        step *= extent
    return steps[::-1]
