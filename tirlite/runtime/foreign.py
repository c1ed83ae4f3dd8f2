"""Sees the arrays of other libraries as NumPy's: what a call does with arguments that are not an ndarray."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tirlite.runtime.dlpack import bfloat_bits

Array: TypeAlias = npt.NDArray[Any]

_FAILURES = (TypeError, ValueError, BufferError, RuntimeError, AttributeError, NotImplementedError)


def as_array(given: Any, *, is_written: bool, is_bfloat: bool = False) -> Array | str:
    """The elements of `given` where they are: by a buffer, the array interface, DLPack or `__array__`, in this order.

    What `is_written` is no copy in any case; those of bfloat16 come as their bits. For what has none of these, or whose
    elements lie on another device, what its library says of that, if anything.
    """
    kind = type(given)  # an object may answer to any name
    try:
        if is_bfloat and hasattr(kind, "__dlpack__") and not isinstance(given, np.ndarray):
            with suppress(BufferError):
                _demand_elements(given)
                return bfloat_bits(given)
        if _has_buffer(given) or hasattr(kind, "__array_interface__"):
            return np.asarray(given, copy=False)
        if hasattr(kind, "__dlpack__"):
            return _by_dlpack(given, is_written=is_written)
        if hasattr(kind, "__array__"):
            return np.asarray(given.__array__(copy=False) if is_written else given.__array__())
    except _FAILURES as error:
        return str(error).split("\n", 1)[0] if hasattr(kind, "__dlpack__") else ""
    return ""


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
    # The first version of DLPack does not say whether writing is allowed; NumPy takes it that it is not.
    other = np.asarray(given.__array__())
    is_same = other.__array_interface__["data"][0] == seen.__array_interface__["data"][0]
    return other if is_same and (other.shape, other.strides) == (seen.shape, seen.strides) else seen


def _demand_elements(given: Any) -> None:
    """Raises BufferError for a tensor of torch that stands for its elements negated: DLPack does not tell of that."""
    is_negated = getattr(given, "is_neg", None)
    if callable(is_negated) and is_negated() is True:
        raise BufferError("its elements are negated when they are read; use tensor.resolve_neg()")


def seen_by_dlpack(given: Sequence[object]) -> Sequence[object] | None:
    """The arguments of a call, arrays with DLPack as those of NumPy; None where none is one, or one cannot be seen so.

    No element is copied, and what may not be written to may not be written to afterwards.
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
