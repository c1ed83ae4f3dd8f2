"""Pickles functions of graphs, with their arrays apart, and unpickles them; only tirlite's classes are allowed.

Pickles that are read have a checksum and come from the cache folder, which is trusted like code.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from enum import Enum
from io import BytesIO
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tirlite.diag import Span
from tirlite.graph.expr import FunctionNode
from tirlite.graph.known.array_locations import Unkept
from tirlite.graph.op import OPS, Op, ops_from_elsewhere

if TYPE_CHECKING:
    import numpy.typing as npt

    Array: TypeAlias = npt.NDArray[Any]

# The globals that pickle itself needs, besides tirlite's classes and functions.
_OTHERS = frozenset({("copyreg", "__newobj__"), ("copyreg", "_reconstructor"), ("builtins", "object")})

_SOME_SPAN = -1


def written(function: FunctionNode, *, spans: bool = True) -> tuple[bytes, list[Array]]:
    """The pickled function, and its constants' arrays in order. Raises Unkept if another process could not read it.

    Without `spans` the bytes do not depend on where the function was built, but cannot be read.
    """
    buffer = BytesIO()
    writer = _Writer(buffer, spans=spans)
    try:
        writer.dump(function)
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError):
        raise Unkept from None
    return buffer.getvalue(), writer.arrays


def read(data: bytes, arrays: Sequence[Array]) -> FunctionNode:
    """The inverse of `written`. Raises ValueError if the data is not a pickled function."""
    try:
        made = _Reader(data, arrays).load()
    except Exception:  # corrupt data may raise any error in a class's constructor
        made = None
    if not isinstance(made, FunctionNode):
        raise ValueError("no function was written so")
    return made


class _Writer(pickle.Pickler):
    def __init__(self, buffer: BytesIO, *, spans: bool) -> None:
        super().__init__(buffer, protocol=5)
        self._spans = spans
        self.arrays: list[Array] = []
        self._known: dict[int, int] = {}

    def persistent_id(self, obj: Any) -> int | None:
        if type(obj) is np.ndarray:
            if id(obj) not in self._known:
                self._known[id(obj)] = len(self.arrays)
                self.arrays.append(obj)
            return self._known[id(obj)]
        if isinstance(obj, Span) and not self._spans:
            return _SOME_SPAN
        if isinstance(obj, Op) and (OPS.get(obj.name) is not obj or obj in ops_from_elsewhere()):
            raise pickle.PicklingError
        if isinstance(obj, type | FunctionType | BuiltinFunctionType):
            _demand_own(obj.__module__, obj.__qualname__)
        return None

    def reducer_override(self, obj: Any) -> Any:
        # Python 3.11.3 and older pickle enum members by `getattr`, which the reader does not allow.
        return (type(obj), (obj.value,)) if isinstance(obj, Enum) else NotImplemented


class _Reader(pickle.Unpickler):
    def __init__(self, data: bytes, arrays: Sequence[Array]) -> None:
        super().__init__(BytesIO(data))
        self._arrays = arrays

    def persistent_load(self, pid: Any) -> Array:
        found: Array = self._arrays[pid]
        return found

    def find_class(self, module: str, name: str, /) -> Any:
        _demand_own(module, name)
        return super().find_class(module, name)


def _demand_own(module: str, name: str) -> None:
    """Raises PicklingError for globals that are not tirlite's; keys of the cache cover only tirlite's files."""
    if (not module.startswith("tirlite.") or "." in name) and (module, name) not in _OTHERS:
        raise pickle.PicklingError
