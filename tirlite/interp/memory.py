"""Gives a buffer its storage at run time: memory of typed elements on bytes, whose shadow knows who wrote each byte.

Each declaration of storage has a number, its owner. A byte that another owner wrote is as good as never written: so a
buffer that shares its bytes with others, one after the other, is still seen to be read before it is written.

A value is poison in the lanes that come from memory that was never written, and says where they were read.
"""

from __future__ import annotations

from math import prod
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from tirlite.diag import Span
from tirlite.interp.bfloat import from_bits, is_bfloat, to_bits
from tirlite.ir import Buffer, DType
from tirlite.ir.faults import UninitialisedRead, never_written
from tirlite.record import cached_property, record

Bytes: TypeAlias = npt.NDArray[np.uint8]
T = TypeVar("T")

# What fresh memory holds. It is poison, so no right program can see it; not zero, so that a wrong one shows.
_FILL = 0xCD
# The owners that a byte tells apart; 0 owns what is poisoned.
_OWNERS = 255


@record(eq=False, slots=False)
class BufferMemory:
    """A buffer that exists.

    `raw` are its bytes, `raw_shadow` as many: the owner that wrote the byte, 0 for a poisoned one; no shadow on an
    array of the caller, which is always good. `data` and `shadow` are the same bytes seen as elements, with one more
    axis for the lanes of vector elements. `owner` is what a shadow element holds that is good.
    """

    buffer: Buffer
    shape: tuple[int, ...]
    raw: Bytes
    raw_shadow: Bytes | None
    data: npt.NDArray[Any]
    shadow: npt.NDArray[Any] | None
    owner: Any

    @cached_property
    def address(self) -> int:
        """Where its first byte lies."""
        found: int = self.raw.__array_interface__["data"][0]
        return found

    @cached_property
    def size(self) -> int:
        """Bytes of an element."""
        return self.buffer.dtype.bytes

    def named(self, flat: int) -> str:
        """The element at a flat index as messages tell of it, like `a[2, 3]`."""
        indices = np.unravel_index(flat, self.shape) if self.shape else ()
        return f"{self.buffer.name}[{', '.join(map(str, indices)) or '()'}]"

    def load(self, flat: Any) -> tuple[Any, npt.NDArray[np.bool_] | None]:
        """The value at the flat element index (or indices, for a vector access), and its poisoned lanes if any."""
        value = self.data[flat]
        if self.buffer.dtype.is_bool:
            value = value != 0
        elif is_bfloat(self.buffer.dtype):
            value = from_bits(value)
        if not value.ndim:
            return value, None if self.shadow is None or self.shadow[flat] == self.owner else np.ones(1, np.bool_)
        if self.shadow is None:
            return value.reshape(-1), None
        bad = self.shadow[flat].reshape(-1) != self.owner
        return value.reshape(-1), bad if bad.any() else None

    def store(self, flat: Any, value: Any, mark: Poison | None) -> None:
        """Write a value with its mark. Memory without shadow takes good values only."""
        if is_bfloat(self.buffer.dtype):
            value = to_bits(value)
        if not value.ndim:
            self.data[flat] = value
            if self.shadow is not None:
                self.shadow[flat] = self.owner if mark is None else 0
            return
        target = self.data[flat].shape
        self.data[flat] = value.reshape(target)
        if self.shadow is not None:
            bad = np.zeros(value.size, np.bool_) if mark is None else np.broadcast_to(mark.lanes, value.size)
            self.shadow[flat] = np.where(bad, 0, self.owner).reshape(target)


def size_of(buffer: Buffer, shape: tuple[int, ...]) -> int:
    """Bytes of `buffer` at the extents `shape`."""
    return prod(shape) * buffer.dtype.bytes


def on_bytes(buffer: Buffer, shape: tuple[int, ...], raw: Bytes, raw_shadow: Bytes | None, owner: int) -> BufferMemory:
    """`buffer` on exactly its bytes, those good that `owner` wrote."""
    dtype = buffer.dtype
    item = np.dtype(np.uint8) if dtype.is_bool else dtype.stored
    word = np.dtype(f"u{item.itemsize}")
    shadow = None if raw_shadow is None else _elements(raw_shadow, word, dtype)
    owners = np.full(item.itemsize, owner, np.uint8).view(word)[0]
    return BufferMemory(buffer, shape, raw, raw_shadow, _elements(raw, item, dtype), shadow, owners)


def _elements(raw: Bytes, item: np.dtype[Any], dtype: DType) -> npt.NDArray[Any]:
    lanes = raw.view(item)
    return lanes if dtype.lanes == 1 else lanes.reshape(-1, dtype.lanes)


def owner_of(number: int) -> int:
    """The owner for the declaration of storage with this number; two that are far apart may be the same."""
    return number % _OWNERS + 1


def fresh(buffer: Buffer, shape: tuple[int, ...], owner: int) -> BufferMemory:
    """`buffer` on new storage, all of it poison. Raises MemoryError."""
    size = size_of(buffer, shape)
    if size > np.iinfo(np.intp).max:
        raise MemoryError
    return on_bytes(buffer, shape, np.full(size, _FILL, np.uint8), np.zeros(size, np.uint8), owner)


def view(
    buffer: Buffer, shape: tuple[int, ...], source: BufferMemory, byte_offset: int, owner: int | None
) -> BufferMemory:
    """`buffer` on the bytes of `source` from `byte_offset` on, which lie within it.

    It sees what `source` sees as good. With an `owner` of its own it sees nothing yet, and what that owner has written
    before is poison again.
    """
    end = byte_offset + size_of(buffer, shape)
    raw, whole = source.raw[byte_offset:end], source.raw_shadow
    shadow = None if whole is None else whole[byte_offset:end]
    if owner is None:
        return on_bytes(buffer, shape, raw, shadow, int(source.owner) & 0xFF)
    if shadow is not None:
        shadow[shadow == owner] = 0
    return on_bytes(buffer, shape, raw, shadow, owner)


def on_array(buffer: Buffer, array: npt.NDArray[Any]) -> BufferMemory:
    """`buffer` on an array of the caller, which is C-contiguous."""
    return on_bytes(buffer, array.shape, array.reshape(-1).view(np.uint8), None, 0)


@record(eq=False)
class Poison:
    """A mark on a value (no mark: all lanes are good).

    `lanes` says for each lane whether it is poisoned, at least one being so; `index` is where in `buffer` it was read.
    """

    lanes: npt.NDArray[np.bool_]
    buffer: Buffer
    index: tuple[int, ...]

    def on(self, lanes: npt.NDArray[np.bool_]) -> Poison | None:
        """The same origin over other lanes; no mark if none of them is poisoned."""
        return Poison(lanes, self.buffer, self.index) if lanes.any() else None

    def spread(self, lanes: int) -> Poison:
        """The mark of a scalar, on each of so many lanes."""
        return Poison(np.ones(lanes, np.bool_), self.buffer, self.index)


def divided(table: dict[int, T], old: int, new: int) -> dict[int, T]:
    """What is known of units of `old` bytes by their addresses, told of units of `new` bytes, which divide them."""
    return {part: known for start, known in table.items() for part in range(start, start + old, new)}


def merged(*marks: Poison | None) -> Poison | None:
    """The mark of what is computed lane by lane from values with these marks."""
    result = None
    for mark in marks:
        if mark is not None:
            result = mark if result is None else Poison(result.lanes | mark.lanes, result.buffer, result.index)
    return result


def refuse(mark: Poison, use: str, span: Span | None) -> UninitialisedRead:
    """The message for a poisoned value where a value must be good."""
    return never_written(use, mark.buffer, mark.index, span)
