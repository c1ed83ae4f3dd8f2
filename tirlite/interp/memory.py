"""Storage at run time: a buffer in, a Window of typed elements on bytes out, whose shadow knows the poisoned ones."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tirlite.interp.bfloat import from_bits, is_bfloat, to_bits
from tirlite.interp.poison import Poison
from tirlite.ir import Buffer, DType

Bytes: TypeAlias = npt.NDArray[np.uint8]

# What fresh memory holds. It is poison, so no right program can see it; not zero, so that a wrong one shows.
_FILL = 0xCD
_POISONED = 0xFF


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """A buffer that exists.

    `raw` are its bytes, `raw_shadow` as many: 0 for a good byte, 255 for a poisoned one; no shadow on an array of the
    caller, which is always good. `data` and `shadow` are the same bytes seen as elements, with one more axis for the
    lanes of vector elements.
    """

    buffer: Buffer
    shape: tuple[int, ...]
    raw: Bytes
    raw_shadow: Bytes | None
    data: npt.NDArray[Any]
    shadow: npt.NDArray[Any] | None

    def load(self, flat: Any) -> tuple[Any, npt.NDArray[np.bool_] | None]:
        """The value at the flat element index (or indices, for a vector access), and its poisoned lanes if any."""
        value = self.data[flat]
        if self.buffer.dtype.is_bool:
            value = value != 0
        elif is_bfloat(self.buffer.dtype):
            value = from_bits(value)
        if not value.ndim:
            return value, None if self.shadow is None or not self.shadow[flat] else np.ones(1, np.bool_)
        if self.shadow is None:
            return value.reshape(-1), None
        bad = self.shadow[flat].reshape(-1) != 0
        return value.reshape(-1), bad if bad.any() else None

    def store(self, flat: Any, value: Any, mark: Poison | None) -> None:
        """Write a value with its mark. A window without shadow takes good values only."""
        if is_bfloat(self.buffer.dtype):
            value = to_bits(value)
        if not value.ndim:
            self.data[flat] = value
            if self.shadow is not None:
                self.shadow[flat] = 0 if mark is None else np.iinfo(self.shadow.dtype).max
            return
        target = self.data[flat].shape
        self.data[flat] = value.reshape(target)
        if self.shadow is not None:
            bad = np.zeros(value.size, np.bool_) if mark is None else np.broadcast_to(mark.lanes, value.size)
            self.shadow[flat] = np.where(bad, np.iinfo(self.shadow.dtype).max, 0).reshape(target)


def size_of(buffer: Buffer, shape: tuple[int, ...]) -> int:
    """Bytes of `buffer` at the extents `shape`."""
    return prod(shape) * buffer.dtype.bytes


def window(buffer: Buffer, shape: tuple[int, ...], raw: Bytes, raw_shadow: Bytes | None) -> Window:
    """`buffer` on exactly its bytes."""
    dtype = buffer.dtype
    item = np.dtype(np.uint8) if dtype.is_bool else dtype.stored
    shadow = None if raw_shadow is None else _elements(raw_shadow, np.dtype(f"u{item.itemsize}"), dtype)
    return Window(buffer, shape, raw, raw_shadow, _elements(raw, item, dtype), shadow)


def _elements(raw: Bytes, item: np.dtype[Any], dtype: DType) -> npt.NDArray[Any]:
    lanes = raw.view(item)
    return lanes if dtype.lanes == 1 else lanes.reshape(-1, dtype.lanes)


def fresh(buffer: Buffer, shape: tuple[int, ...]) -> Window:
    """`buffer` on new storage, all of it poison. Raises MemoryError."""
    size = size_of(buffer, shape)
    if size > np.iinfo(np.intp).max:
        raise MemoryError
    return window(buffer, shape, np.full(size, _FILL, np.uint8), np.full(size, _POISONED, np.uint8))


def view(buffer: Buffer, shape: tuple[int, ...], source: Window, byte_offset: int) -> Window:
    """`buffer` on the bytes of `source` from `byte_offset` on; they must lie within it."""
    end = byte_offset + size_of(buffer, shape)
    shadow = source.raw_shadow
    return window(buffer, shape, source.raw[byte_offset:end], None if shadow is None else shadow[byte_offset:end])


def on_array(buffer: Buffer, array: npt.NDArray[Any]) -> Window:
    """`buffer` on an array of the caller, which is C-contiguous."""
    return window(buffer, array.shape, array.reshape(-1).view(np.uint8), None)
