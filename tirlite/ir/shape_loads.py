"""Finds the loads in extents of a function, or of a buffer."""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.ir.expr import Buffer, IntImm, Load, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.stmt import Allocate, View
from tirlite.ir.walk import statements, walk


def loads_in_shapes(func: PrimFunc) -> Iterator[Load]:
    """The loads in extents, which are not children of the statements that declare the buffers."""
    for stmt in statements(func.body):
        if isinstance(stmt, Allocate | View):
            yield from _loads(stmt.buffer)


def is_sized_by_load(buffer: Buffer) -> bool:
    """Whether an extent is read from memory, as it is when the declaration of the buffer runs."""
    return next(_loads(buffer), None) is not None


def _loads(buffer: Buffer) -> Iterator[Load]:
    for extent in buffer.shape:
        if not isinstance(extent, IntImm | Var):
            yield from (node for node in walk(extent) if isinstance(node, Load))
