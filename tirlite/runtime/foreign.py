"""Sees the arrays of other libraries as NumPy's: what a call does with arguments that are not an ndarray."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

_FAILURES = (TypeError, ValueError, BufferError, RuntimeError, AttributeError, NotImplementedError)


def as_array(given: Any, *, is_written: bool) -> Array | None:
    """The elements of `given` where they are: by a buffer, the array interface, DLPack or `__array__`, in this order.

    None for what has none of these, or whose elements lie on another device. What `is_written` is no copy in any case.
    """
    kind = type(given)  # an object may answer to any name
    try:
        if _has_buffer(given) or hasattr(kind, "__array_interface__"):
            return np.asarray(given, copy=False)
        if hasattr(kind, "__dlpack__"):
            return _by_dlpack(given, is_written=is_written)
        if hasattr(kind, "__array__"):
            return np.asarray(given.__array__(copy=False) if is_written else given.__array__())
    except _FAILURES:
        pass
    return None


def _has_buffer(given: object) -> bool:
    try:
        memoryview(given)  # type: ignore[arg-type]
    except (TypeError, BufferError):
        return False
    return True


def _by_dlpack(given: Any, *, is_written: bool) -> Array:
    seen: Array = np.from_dlpack(given)
    if not is_written or seen.flags.writeable or not hasattr(type(given), "__array__"):
        return seen
    # The first version of DLPack does not say whether writing is allowed; NumPy takes it that it is not.
    other = np.asarray(given.__array__())
    is_same = other.__array_interface__["data"][0] == seen.__array_interface__["data"][0]
    return other if is_same and (other.shape, other.strides) == (seen.shape, seen.strides) else seen
