"""Storages, which have bytes for a while, the tensors that lie on them, and the values of a run by register."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tirlite.graph.static_runtime.nodes import Register, Result
from tirlite.graph.types import TensorType, Type
from tirlite.ir import DType

Array: TypeAlias = npt.NDArray[Any]
ALIGN = 64
Value: TypeAlias = "Tensor | tuple[Value, ...]"
# What callers give and get.
Arrays: TypeAlias = "Array | tuple[Arrays, ...]"


@dataclass(slots=True, eq=False)
class Storage:
    """Bytes that one or several tensors lie on. It is told from others by identity, whatever bytes it has."""

    memory: Array | None = None

    @property
    def size(self) -> int:
        """Bytes."""
        return 0 if self.memory is None else self.memory.size


@dataclass(slots=True, eq=False)
class Tensor:
    """A value of a run: a storage, and the array that lies at its begin."""

    dtype: DType
    storage: Storage
    array: Array

    @classmethod
    def empty(cls, dtype: DType, storage: Storage | None = None) -> Tensor:
        """A tensor without elements, on a storage of its own where none is given."""
        return cls(dtype, storage or Storage(), np.empty(0, dtype.stored))

    @classmethod
    def of(cls, array: Array, dtype: DType) -> Tensor:
        """The tensor that an array is."""
        return cls(dtype, Storage(_bytes_of(array)), array)

    @property
    def bytes(self) -> int:
        return self.array.nbytes

    def resize(self, shape: tuple[int, ...]) -> None:
        """Makes it an array of this shape, whose elements are undefined; a storage too small gets new bytes."""
        size = prod(shape) * self.dtype.bytes
        if self.storage.memory is None or self.storage.size < size:
            self.storage.memory = aligned(size)
        self.array = self.storage.memory[:size].view(self.dtype.stored).reshape(shape)

    def reset(self, storage: Storage) -> None:
        """Makes it a tensor without elements on a storage."""
        self.storage = storage
        self.array = np.empty(0, self.dtype.stored)

    def assign(self, array: Array) -> None:
        """Makes it another array, on a storage that no other tensor has."""
        self.storage = Storage(_bytes_of(array))
        self.array = array

    def share(self, other: Tensor) -> None:
        """Makes it the array of another tensor, on the storage of that one."""
        self.storage = other.storage
        self.array = other.array


def aligned(size: int) -> Array:
    """Fresh bytes at an address that is a multiple of 64."""
    memory = np.empty(size + ALIGN, np.uint8)
    start = -memory.ctypes.data % ALIGN
    return memory[start : start + size]


def span(array: Array) -> tuple[int, int]:
    """The addresses of the first byte of a contiguous array, and behind its last one."""
    start = array.ctypes.data
    return start, start + array.nbytes


def _bytes_of(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


@dataclass(frozen=True, slots=True)
class Borrowed:
    """One of the values of a tuple, which goes on belonging to the tuple: no reference of its own is held."""

    owner: Register
    index: int


@dataclass(slots=True)
class Frame:
    """What each register holds."""

    held: dict[Register, Value | Borrowed] = field(default_factory=dict)

    def value(self, register: Register) -> Value:
        """The value itself, with a borrowed one made one's own."""
        path = []
        found = self.held[register]
        while isinstance(found, Borrowed):
            path.append(found.index)
            found = self.held[found.owner]
        for index in reversed(path):
            assert isinstance(found, tuple)
            found = found[index]
        return found

    def tensor(self, register: Register) -> Tensor:
        found = self.value(register)
        assert isinstance(found, Tensor)
        return found

    def result(self, result: Result) -> Value:
        """A result, on its own: what later becomes of the tensors in it does not change it."""
        if isinstance(result, Register):
            return _kept(self.value(result))
        return tuple(map(self.result, result))


def _kept(value: Value) -> Value:
    if isinstance(value, Tensor):
        return Tensor(value.dtype, value.storage, value.array)
    return tuple(map(_kept, value))


def loaded(arrays: Any, of: Type) -> Value:
    """Arrays as a value of a type."""
    if isinstance(of, TensorType):
        return Tensor.of(np.require(arrays, requirements="C"), of.dtype)
    return tuple(loaded(each, kind) for each, kind in zip(arrays, of.fields, strict=True))


def arrays_of(value: Value) -> Arrays:
    """The arrays of a value."""
    return value.array if isinstance(value, Tensor) else tuple(map(arrays_of, value))
