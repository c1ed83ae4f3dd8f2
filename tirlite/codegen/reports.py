"""Makes the message of a fault from its number and the values that a kernel left when it stopped.

Faults that the interpreter reports too have the same messages there.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Protocol, TypeAlias

from tirlite.diag import KernelRunError, Message, Span
from tirlite.ir import Assert, Binary, Buffer, DType, failure, i64, shown
from tirlite.ir.faults import IndexOutOfBounds, NegativeExtent, OutOfMemory, ViewOutOfBounds, never_written, trap_of
from tirlite.ir.loop_values import at_loops
from tirlite.record import record

Number: TypeAlias = bool | int | float


class FaultReport(Protocol):
    """A fault with values; the kernel leaves each as 64 bits."""

    @property
    def types(self) -> tuple[DType, ...]:
        """The types of the values, in order."""

    def message(self, values: Sequence[Number]) -> Message:
        """The message with these values."""

    def bare(self) -> Message:
        """The message if there was no memory for the values."""


class ExtentOutOfRange(Message):
    """A buffer whose size is known only inside of the kernel has an impossible one.

    Example: `t = tl.alloc(tl.f32[count - 10])` in a loop that changes `count`, which falls below 10.
    Fix: Keep the extent at 0 or above with `max`, or put the code that needs the buffer under an `if`.
    """

    raises = KernelRunError
    title = "`{buffer}` has {found}"
    label = "declared here"

    found: str = "a negative extent, or more than 2**62 bytes"


@record
class FailedAssert:
    """A failed assert, with the values in its message and condition.

    `is_marked`: in debug code, each value is followed by a flag that says whether it is poison.
    """

    stmt: Assert
    is_marked: bool = False

    @property
    def types(self) -> tuple[DType, ...]:
        told = shown(self.stmt).types
        return tuple(each for dtype in told for each in (dtype, i64)) if self.is_marked else told

    def message(self, values: Sequence[Number]) -> Message:
        if not self.is_marked:
            return failure(self.stmt, values)
        return failure(self.stmt, [None if values[k + 1] else values[k] for k in range(0, len(values), 2)])

    def bare(self) -> Message:
        return failure(self.stmt, (None,) * len(shown(self.stmt).types))


@record
class WrongExtents:
    """A buffer of impossible size; values: whether an extent overflowed, then the extents."""

    buffer: Buffer
    span: Span | None

    @property
    def types(self) -> tuple[DType, ...]:
        return (i64,) * (1 + len(self.buffer.shape))

    def message(self, values: Sequence[Number]) -> Message:
        wrapped, *extents = values
        axis = next((axis for axis, extent in enumerate(extents) if extent < 0), None)
        if wrapped:
            found = "an extent that does not fit into 64 bits"
        elif axis is not None:
            found = f"the negative extent {extents[axis]}" + (f" along axis {axis}" if len(extents) > 1 else "")
        else:
            found = f"the shape [{', '.join(map(str, extents))}], which is more than 2**62 bytes"
        return ExtentOutOfRange(self.buffer.name, found, span=self.span)

    def bare(self) -> Message:
        return ExtentOutOfRange(self.buffer.name, span=self.span)


@record
class Report:
    """Base class of the faults in this module that have a span."""

    span: Span | None

    def bare(self) -> Message:
        return OutOfMemory(8, "the values of another fault, which would stand here", span=self.span)


@record
class IndexReport(Report):
    """An index out of bounds; values: each checked index and its extent, then the variables of the loops around.

    `axes`: the checked axes. `loops`: the names of those variables.
    """

    buffer: str
    axes: tuple[int, ...]
    indices: tuple[DType, ...]
    loops: tuple[str, ...]

    @property
    def types(self) -> tuple[DType, ...]:
        pairs = tuple(each for dtype in self.indices for each in (dtype.scalar, i64))
        return (*pairs, *(i64 for _ in self.loops))

    def message(self, values: Sequence[Number]) -> Message:
        cut = 2 * len(self.axes)
        pairs = [(int(values[k]), int(values[k + 1])) for k in range(0, cut, 2)]
        axis, pair = next((a, p) for a, p in zip(self.axes, pairs, strict=True) if not 0 <= p[0] < p[1])
        return IndexOutOfBounds(self.buffer, axis, *pair, _at_loops(self.loops, values[cut:]), span=self.span)


@record
class PoisonReport(Report):
    """A use of poison; values: the number of the buffer that it was read from, and the indices, padded to `rank`."""

    use: str
    buffers: list[Buffer]  # all buffers of the module, by number
    rank: int

    @property
    def types(self) -> tuple[DType, ...]:
        return (i64,) * (1 + self.rank)

    def message(self, values: Sequence[Number]) -> Message:
        buffer = self.buffers[int(values[0])]
        return never_written(self.use, buffer, map(int, values[1 : 1 + len(buffer.shape)]), self.span)


@record
class TrapReport(Report):
    """An integer operation without a value for its operands, which are its values."""

    kind: type[Binary]
    dtype: DType

    @property
    def types(self) -> tuple[DType, ...]:
        return (self.dtype.scalar, self.dtype.scalar)

    def message(self, values: Sequence[Number]) -> Message:
        trap = trap_of(self.kind, self.dtype)
        assert trap is not None
        message = trap(int(values[0]), int(values[1]), self.span)
        assert message is not None
        return message


@record
class ExtentReport(Report):
    """A declaration with a negative extent; its values are the extents."""

    buffer: Buffer

    @property
    def types(self) -> tuple[DType, ...]:
        return (i64,) * len(self.buffer.shape)

    def message(self, values: Sequence[Number]) -> Message:
        axis, extent = next((axis, int(value)) for axis, value in enumerate(values) if value < 0)
        return NegativeExtent(self.buffer.name, axis, extent, span=self.span)


@record
class MemoryReport(Report):
    """An allocation for which there is no memory; its values are the extents."""

    buffer: Buffer

    @property
    def types(self) -> tuple[DType, ...]:
        return (i64,) * len(self.buffer.shape)

    def message(self, values: Sequence[Number]) -> Message:
        return OutOfMemory(_bytes(self.buffer, values), self.buffer.name, span=self.span)


@record
class ViewReport(Report):
    """A view that reaches out of its source; values: its byte offset, its extents, those of the source, loop variables.

    `loops`: the names of the variables of the loops around.
    """

    buffer: Buffer
    source: Buffer
    loops: tuple[str, ...]

    @property
    def types(self) -> tuple[DType, ...]:
        return (i64,) * (1 + len(self.buffer.shape) + len(self.source.shape) + len(self.loops))

    def message(self, values: Sequence[Number]) -> Message:
        first, cut = int(values[0]), 1 + len(self.buffer.shape)
        last = first + _bytes(self.buffer, values[1:cut])
        end = cut + len(self.source.shape)
        available, at = _bytes(self.source, values[cut:end]), _at_loops(self.loops, values[end:])
        return ViewOutOfBounds(self.buffer.name, self.source.name, first, last, available, at, span=self.span)


def _bytes(buffer: Buffer, extents: Sequence[Number]) -> int:
    return prod(int(extent) for extent in extents) * buffer.dtype.bytes


def _at_loops(names: Sequence[str], values: Sequence[Number]) -> str:
    return at_loops([(name, int(value)) for name, value in zip(names, values, strict=True)])
