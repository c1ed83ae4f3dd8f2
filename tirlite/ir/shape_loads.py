"""A function in, the loads in extents of its buffers out."""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.ir.expr import IntImm, Load, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.stmt import Allocate, View
from tirlite.ir.walk import statements, walk


def loads_in_shapes(func: PrimFunc) -> Iterator[Load]:
    """The loads in extents, which are no children of the statements that declare the buffers."""
    for stmt in statements(func.body):
        if isinstance(stmt, Allocate | View):
            for extent in stmt.buffer.shape:
                if not isinstance(extent, IntImm | Var):
                    yield from (node for node in walk(extent) if isinstance(node, Load))
