"""Properties of buffers' extents: constant shapes and sizes, and loads in extents."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tirlite.ir.expr import Buffer, IntImm, Load, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.stmt import Allocate, View
from tirlite.ir.walk import loads_in, statements


def constant_shape(buffer: Buffer) -> tuple[int, ...] | None:
    """The extents of a buffer; None if one is not constant."""
    found = tuple([extent.value for extent in buffer.shape if type(extent) is IntImm])
    return found if len(found) == len(buffer.shape) else None


def constant_bytes(buffer: Buffer) -> int | None:
    """The size of a buffer with constant extents, else None. A negative extent counts as zero."""
    found = buffer.dtype.bytes
    for extent in buffer.shape:
        if type(extent) is not IntImm:
            return None
        found *= extent.value if extent.value > 0 else 0
    return found


def has_one_element(buffer: Buffer) -> bool:
    """Whether a buffer has constant extents and one element."""
    shape = constant_shape(buffer)
    return shape is not None and prod(shape) == 1


def least_alignment(buffer: Buffer) -> int:
    """The declared alignment, or the largest power of two up to 64 that divides the bytes of an element."""
    return max(buffer.alignment, min(64, buffer.dtype.bytes & -buffer.dtype.bytes))


def loads_in_shapes(func: PrimFunc) -> Iterator[Load]:
    """The loads in extents, which are not children of the statements that declare the buffers."""
    for stmt in statements(func.body):
        if isinstance(stmt, Allocate | View):
            yield from _loads(stmt.buffer)


def is_sized_by_load(buffer: Buffer) -> bool:
    """Whether an extent is loaded from memory at the buffer's declaration."""
    return next(_loads(buffer), None) is not None


def _loads(buffer: Buffer) -> Iterator[Load]:
    for extent in buffer.shape:
        if not isinstance(extent, IntImm | Var):
            yield from loads_in(extent)
