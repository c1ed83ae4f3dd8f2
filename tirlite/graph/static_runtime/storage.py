"""Storages, which have bytes for a while, and the tensors that lie on them."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tirlite.ir import DType

Array: TypeAlias = npt.NDArray[Any]
ALIGN = 64


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
