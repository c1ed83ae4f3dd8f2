"""Raises an error for allocations that a function cannot have with its arguments, before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from tirlite.analysis.integers.extents import known_values
from tirlite.ir import Allocate, PrimFunc, Var, statements_of
from tirlite.ir.faults import NegativeExtent, OutOfMemory
from tirlite.ir.size import value_of

# Beyond, sizes are refused without asking for memory; below the other one, memory is taken for granted.
_LARGEST = 1 << 62
_SMALL = 1 << 20


def demand_room(func: PrimFunc, given: Mapping[Var, int]) -> None:
    """Raises KernelRunError where an allocation has a negative extent, or more bytes than there are.

    Looks at those whose extents are known from what the caller gave, computed without wrapping around. The others are
    checked when they are reached.
    """
    allocations = tuple(statements_of(func.body, Allocate))
    values = known_values(func, given) if allocations else given
    for stmt in allocations:
        buffer, shape = stmt.buffer, stmt.buffer.shape
        extents = [value for extent in shape if (value := value_of(extent, values)) is not None]
        if len(extents) < len(shape):
            continue
        for axis, extent in enumerate(extents):
            if extent < 0:
                raise NegativeExtent(buffer.name, axis, extent, span=stmt.span).error()
        size = prod(extents, start=buffer.dtype.bytes)
        if not _can_have(size):
            raise OutOfMemory(buffer.name, size, span=stmt.span).error()


def _can_have(size: int) -> bool:
    if size <= _SMALL or size > _LARGEST:
        return size <= _SMALL
    try:
        np.empty(size, np.uint8)
    except MemoryError:
        return False
    return True
