"""Makes checked integers from registers of indices and extents: the element an access means, the size of a buffer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from tirlite.diag import Span
from tirlite.interp.memory import BufferMemory, refuse
from tirlite.interp.program import Marks, Values
from tirlite.ir import Buffer
from tirlite.ir.faults import IndexOutOfBounds, NegativeExtent
from tirlite.ir.loop_values import at_loops
from tirlite.record import record

# What gives the flat index of an access: a number, or an array of them for a vector.
Locate: TypeAlias = Callable[[BufferMemory, Values, Marks], Any]


@record(eq=False)
class Site:
    """Where an access stands: its place in the source, and the names and registers of the loops around."""

    span: Span | None
    loops: tuple[tuple[str, int], ...]

    def told(self, values: Values) -> str:
        """What a message says of the loops."""
        return at_loops([(name, int(values[register])) for name, register in self.loops])


def located(indices: tuple[int, ...], site: Site) -> Locate:
    """What gives the flat index that `element` gives, soon where nothing is special: in bounds, good, no vector."""

    axes, only = tuple(enumerate(indices)), indices[-1] if indices else 0

    def along_one(memory: BufferMemory, values: Values, marks: Marks) -> Any:
        index = values[only]
        if marks[only] is None and not index.ndim and 0 <= (at := int(index)) < memory.shape[0]:
            return at
        return element(memory, indices, values, marks, site)

    def locate(memory: BufferMemory, values: Values, marks: Marks) -> Any:
        flat, shape = 0, memory.shape
        for axis, register in axes:
            index, extent = values[register], shape[axis]
            if marks[register] is not None or index.ndim:
                return element(memory, indices, values, marks, site)
            at = int(index)
            if not 0 <= at < extent:
                return element(memory, indices, values, marks, site)
            flat = flat * extent + at
        return flat

    return along_one if len(indices) == 1 else locate


def element(memory: BufferMemory, indices: tuple[int, ...], values: Values, marks: Marks, site: Site) -> Any:
    """The flat index of an access in elements of `memory`; an array of them if the last index is a vector.

    A vector without lanes touches nothing: then nothing is asked of the other indices.
    """
    if indices and not values[indices[-1]].size:
        return values[indices[-1]].astype(np.int64)
    flat: Any = 0
    for axis, register in enumerate(indices):
        mark = marks[register]
        if mark is not None:
            raise refuse(mark, f"index {axis} of `{memory.buffer.name}`", site.span).error()
        index, extent = values[register], memory.shape[axis]
        if index.ndim:
            outside = (index < 0) | (index >= extent)
            if outside.any():
                raise _outside(memory, axis, int(index[outside][0]), values, site)
            index = index.astype(np.int64)
        else:
            index = int(index)
            if not 0 <= index < extent:
                raise _outside(memory, axis, index, values, site)
        flat = flat * extent + index
    return flat


def _outside(memory: BufferMemory, axis: int, index: int, values: Values, site: Site) -> Exception:
    told, extent = site.told(values), memory.shape[axis]
    return IndexOutOfBounds(memory.buffer.name, axis, index, extent, told, span=site.span).error()


def position(indices: tuple[int, ...], values: Values) -> tuple[int, ...]:
    """The indices of an access, for messages; of a vector access, those of its first lane."""
    return tuple(int(np.ravel(values[register])[0]) for register in indices)


def extents(
    buffer: Buffer, registers: tuple[int, ...], values: Values, marks: Marks, span: Span | None
) -> tuple[int, ...]:
    """The shape of `buffer`, none of its extents negative."""
    shape = []
    for axis, register in enumerate(registers):
        mark = marks[register]
        if mark is not None:
            raise refuse(mark, f"extent {axis} of `{buffer.name}`", span).error()
        extent = int(values[register])
        if extent < 0:
            raise NegativeExtent(buffer.name, axis, extent, span=span).error()
        shape.append(extent)
    return tuple(shape)
