"""Views the arrays of other libraries as NumPy arrays.

bfloat16 arrays are read through DLPack directly, as NumPy has no such type and refuses it from others.
Source: dlpack.h, versions 0 and 1.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

_FAILURES = (TypeError, ValueError, BufferError, RuntimeError, AttributeError, NotImplementedError)
_CPU = 1
_BFLOAT = 4
_READ_ONLY = 1


def as_array(given: Any, *, is_written: bool, is_bfloat: bool = False) -> Array | str:
    """A view of the elements of `given`: by its buffer, array interface, DLPack or `__array__`, in this order.
    An array that `is_written` is never copied; bfloat16 comes as its bits. If there is no such view, or the elements
    are on another device, returns the library's error message, or "".
    """
    kind = type(given)  # look attributes up on the type: an object may have any attribute
    try:
        if is_bfloat and hasattr(kind, "__dlpack__") and not isinstance(given, np.ndarray):
            with suppress(BufferError):
                _demand_elements(given)
                return bfloat_bits(given)
        if _has_buffer(given) or hasattr(kind, "__array_interface__") or "__array_interface__" in _own(given):
            return np.asarray(given, copy=False)
        if hasattr(kind, "__dlpack__"):
            return _by_dlpack(given, is_written=is_written)
        if hasattr(kind, "__array__"):
            return np.asarray(given.__array__(copy=False) if is_written else given.__array__())
    except _FAILURES as error:
        return str(error).split("\n", 1)[0]
    return ""


def _own(given: object) -> Mapping[str, object]:
    """What was stored in an object by name: as NumPy's guide has it, its interface may be, too."""
    try:
        return vars(given)
    except TypeError:
        return {}


def _has_buffer(given: object) -> bool:
    try:
        memoryview(given)  # type: ignore[arg-type]
    except (TypeError, BufferError):
        return False
    return True


def _by_dlpack(given: Any, *, is_written: bool) -> Array:
    _demand_elements(given)
    seen: Array = np.from_dlpack(given)
    if not is_written or seen.flags.writeable or not hasattr(type(given), "__array__"):
        return seen
    # DLPack version 0 does not say whether writing is allowed, and NumPy assumes that it is not.
    other = np.asarray(given.__array__())
    is_same = other.__array_interface__["data"][0] == seen.__array_interface__["data"][0]
    return other if is_same and (other.shape, other.strides) == (seen.shape, seen.strides) else seen


def _demand_elements(given: Any) -> None:
    """Raises BufferError for a torch tensor that is lazily negated, which DLPack does not express."""
    is_negated = getattr(given, "is_neg", None)
    if callable(is_negated) and is_negated() is True:
        raise BufferError("its elements are negated when they are read; use tensor.resolve_neg()")


def seen_by_dlpack(given: Sequence[object]) -> Sequence[object] | None:
    """The arguments of a call, with DLPack arrays as NumPy views; None if there are none, or one cannot be viewed.

    No element is copied, and read-only arrays stay read-only.
    """
    if not any(hasattr(type(each), "__dlpack__") and not isinstance(each, np.ndarray | np.generic) for each in given):
        return None
    try:
        return [_quickly_seen(each) for each in given]
    except _FAILURES:
        return None


def _quickly_seen(given: Any) -> object:
    if isinstance(given, np.ndarray | np.generic) or not hasattr(type(given), "__dlpack__"):
        return given
    _demand_elements(given)
    return np.from_dlpack(given)


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
    """A view of the bits of another library's bfloat16 array.

    It is read-only unless the library says otherwise. Raises BufferError for another type or device.
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
    memory.owner = capsule  # keeps the elements alive
    made: npt.NDArray[np.uint16] = np.ndarray(shape, np.uint16, memory, -low, strides)
    made.flags.writeable = is_writable
    return made


def _opened(given: Any) -> tuple[object, _Tensor, bool]:
    """The library's capsule, the tensor in it, and whether it may be written to."""
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
