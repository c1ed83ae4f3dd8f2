"""The values of a run by register: tensors, tuples of values, and values that are only borrowed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from tirlite.graph.static_runtime.nodes import Register, Result
from tirlite.graph.static_runtime.storage import Array, Tensor
from tirlite.graph.types import TensorType, Type

Value: TypeAlias = "Tensor | tuple[Value, ...]"
# What callers give and get.
Arrays: TypeAlias = "Array | tuple[Arrays, ...]"


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
