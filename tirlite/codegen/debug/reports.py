"""The values that a check left in, the message of its fault out: the same that the interpreter gives."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tirlite.codegen.told import Number
from tirlite.diag import Message, Span
from tirlite.ir import Assert, Binary, Buffer, DType, failure, i64, shown
from tirlite.ir.faults import IndexOutOfBounds, NegativeExtent, OutOfMemory, UninitialisedRead, ViewOutOfBounds
from tirlite.ir.traps import trap_of
from tirlite.record import record


@record
class Report:
    """What the faults of this module have in common."""

    span: Span | None

    def bare(self) -> Message:
        return OutOfMemory("the values of another fault, which would stand here", 8, span=self.span)


@record
class IndexReport(Report):
    """The indices of an access that lies outside of its buffer, each followed by the extent of its axis."""

    buffer: str
    indices: tuple[DType, ...]

    @property
    def types(self) -> tuple[DType, ...]:
        return tuple(each for dtype in self.indices for each in (dtype.scalar, i64))

    def message(self, values: Sequence[Number]) -> Message:
        pairs = [(int(values[k]), int(values[k + 1])) for k in range(0, len(values), 2)]
        outside = [axis for axis, (index, extent) in enumerate(pairs) if not 0 <= index < extent]
        axis = outside[0]
        return IndexOutOfBounds(self.buffer, axis, *pairs[axis], span=self.span)


@record
class AxisReport(IndexReport):
    """The same of one axis alone."""

    axis: int

    def message(self, values: Sequence[Number]) -> Message:
        return IndexOutOfBounds(self.buffer, self.axis, int(values[0]), int(values[1]), span=self.span)


@record
class PoisonReport(Report):
    """The number of the buffer that poison was read from, and the indices, as many as any buffer has there."""

    use: str
    buffers: list[Buffer]  # all of the module
    rank: int

    @property
    def types(self) -> tuple[DType, ...]:
        return (i64,) * (1 + self.rank)

    def message(self, values: Sequence[Number]) -> Message:
        buffer = self.buffers[int(values[0])]
        indices = [str(int(index)) for index in values[1 : 1 + len(buffer.shape)]]
        element = f"{buffer.name}[{', '.join(indices) or '()'}]"
        return UninitialisedRead(self.use, buffer.name, element, span=self.span)


@record
class TrapReport(Report):
    """The operands of an integer operation that has no value for them."""

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
    """The extents of a declaration, one of them negative."""

    buffer: Buffer
    first: int = 0  # the axis of the first

    @property
    def types(self) -> tuple[DType, ...]:
        return (i64,) * (len(self.buffer.shape) - self.first)

    def message(self, values: Sequence[Number]) -> Message:
        axis, extent = next((axis, int(value)) for axis, value in enumerate(values, self.first) if value < 0)
        return NegativeExtent(self.buffer.name, axis, extent, span=self.span)


@record
class MemoryReport(Report):
    """The extents of an allocation for which there is no memory."""

    buffer: Buffer

    @property
    def types(self) -> tuple[DType, ...]:
        return (i64,) * len(self.buffer.shape)

    def message(self, values: Sequence[Number]) -> Message:
        return OutOfMemory(self.buffer.name, _bytes(self.buffer, values), span=self.span)


@record
class ViewReport(Report):
    """The byte offset of a view, its extents, and then those of its source, in which it does not lie."""

    buffer: Buffer
    source: Buffer

    @property
    def types(self) -> tuple[DType, ...]:
        return (i64,) * (1 + len(self.buffer.shape) + len(self.source.shape))

    def message(self, values: Sequence[Number]) -> Message:
        first, cut = int(values[0]), 1 + len(self.buffer.shape)
        last = first + _bytes(self.buffer, values[1:cut])
        available = _bytes(self.source, values[cut:])
        return ViewOutOfBounds(self.buffer.name, self.source.name, first, last, available, span=self.span)


@record
class AssertReport(Report):
    """The values of an assert that did not hold, each followed by whether it is poisoned."""

    stmt: Assert

    @property
    def types(self) -> tuple[DType, ...]:
        return tuple(each for dtype in shown(self.stmt).types for each in (dtype, i64))

    def message(self, values: Sequence[Number]) -> Message:
        return failure(self.stmt, [None if values[k + 1] else values[k] for k in range(0, len(values), 2)])


def _bytes(buffer: Buffer, extents: Sequence[Number]) -> int:
    return prod(int(extent) for extent in extents) * buffer.dtype.bytes
