"""Emits the addresses of buffers in the workspace, and the function that computes the workspace's size.

Each size comes with an overflow flag of its computation.
"""

from __future__ import annotations

from collections.abc import Iterable

from tirlite.codegen.expressions import Expressions, Side
from tirlite.codegen.faults import any_of, checked_bytes
from tirlite.codegen.llvm.text import FunctionText
from tirlite.codegen.llvm.values import FALSE, Value, integer
from tirlite.codegen.memory import Environment
from tirlite.codegen.storage import LARGEST_BYTES, Storage, Workspace, parts_of
from tirlite.ir import Add, Binary, Buffer, DType, Expr, For, Mul, Steps, Sub, bool_, i64
from tirlite.record import record
from tirlite.sizes import round_up

_CHECKED: dict[type[Expr], str] = {Add: "sadd", Sub: "ssub", Mul: "smul"}


class ExactExpressions(Expressions):
    """Emits expressions, and collects the overflow flags of 64-bit sums, differences and products in `overflows`."""

    def __init__(self, out: FunctionText, environment: Environment) -> None:
        super().__init__(out, environment)
        self.overflows: list[Value] = []

    def _may_be_speculated(self, expr: Expr) -> bool:
        """Never: a value that is not needed must not set a flag."""
        return False

    def binary(self, expr: Binary) -> Steps[Value]:
        is_checked = expr.dtype == i64 and type(expr) in _CHECKED
        return self._flagged(expr) if is_checked else super().binary(expr)

    def _flagged(self, expr: Binary) -> Steps[Value]:
        a = self._leaf(expr.a) or (yield self.steps(expr.a))
        b = self._leaf(expr.b) or (yield self.steps(expr.b))
        value, wraps = self.out.overflowing(_CHECKED[type(expr)], a, b)
        self.overflows.append(wraps)
        return value

    def _side(self, expr: Expr, done: str) -> Steps[Side]:
        around, self.overflows = self.overflows, []
        side: Side = yield super()._side(expr, done)
        self.overflows = around
        return side

    def fact_of(self, _value: Value) -> Value | None:
        """The flags of the current block, joined into one."""
        return any_of(self.out, self.overflows) if self.overflows else None

    def merged(self, dtype: DType, *sides: Side) -> Value:
        if any(side.fact is not None for side in sides):
            flags = ((side.fact if isinstance(side.fact, Value) else FALSE, side.block) for side in sides)
            self.overflows.append(self.out.phi(bool_, *flags))
        return super().merged(dtype, *sides)


@record
class WorkerPart:
    """The workspace of a parallel loop: the address of worker 0's part, and the bytes per worker."""

    start: Value
    bytes: Value


@record
class WorkspaceLayout:
    """The addresses of the function's own buffers in the workspace, and the parts of its parallel loops."""

    addresses: dict[Buffer, Value]
    parts: dict[For, WorkerPart]


def workspace_layout(values: Expressions, storage: Storage, workspace: Value) -> WorkspaceLayout:
    """Emits the computation of all addresses in the workspace at `workspace`."""
    out = values.out
    addresses: dict[Buffer, Value] = {}
    parts: dict[For, WorkerPart] = {}
    offset = integer(0)
    for loop, copies in parts_of(storage):
        buffers = storage.ranges[loop]
        if loop is None:
            offset = _line_up(values, storage, buffers, workspace, offset, addresses)
        elif buffers:
            size = _line_up(values, storage, buffers, None, integer(0), {})
            parts[loop] = WorkerPart(_range(out, workspace, offset), size)
            offset = _sum(out, offset, out.product(size, integer(copies)))
    return WorkspaceLayout(addresses, parts)


def worker_addresses(
    values: Expressions, storage: Storage, loop: For, part: WorkerPart, worker: Value
) -> dict[Buffer, Value]:
    """The addresses of the buffers inside `loop`, computed from the worker's number in the loop's function."""
    addresses: dict[Buffer, Value] = {}
    start = _range(values.out, part.start, values.out.op("mul", worker, part.bytes))
    _line_up(values, storage, storage.ranges[loop], start, integer(0), addresses)
    return addresses


def write_size_function(values: ExactExpressions, workspace: Workspace, line: int) -> None:
    """Emits the body of the size function; every overflow is detected."""
    out = values.out
    total = integer(workspace.bytes)
    each = zip(workspace.buffers, workspace.shapes, workspace.copies, strict=True)
    for number, (buffer, shape, copies) in enumerate(each):
        values.overflows.clear()
        extents = [values.value(extent) for extent in shape]
        size, bad = checked_bytes(out, buffer, extents)
        if copies > 1:
            bad = any_of(out, [bad, out.compare("icmp ugt", size, integer(LARGEST_BYTES // copies - line))])
        # Both terms are at most 2^62, so their sum cannot overflow.
        total = _sum(out, total, out.product(_padded(out, size, line), integer(copies)))
        large = out.compare("icmp ugt", total, integer(LARGEST_BYTES))
        _refuse_if(out, [bad, large, *values.overflows], number)
    for number, buffer in enumerate(workspace.doubtful, start=len(workspace.buffers)):
        values.overflows.clear()
        flags = [out.compare("icmp slt", values.value(extent), integer(0)) for extent in buffer.shape]
        _refuse_if(out, [*flags, *values.overflows], number)
    out.effect(f"ret i64 {total.text}")


def _refuse_if(out: FunctionText, flags: list[Value], number: int) -> None:
    impossible, fine = out.label("impossible"), out.label("fine")
    out.branch_if(any_of(out, flags), impossible, fine)
    out.start(impossible)
    out.effect(f"ret i64 {-(number + 1)}")
    out.start(fine)


def _line_up(
    values: Expressions,
    storage: Storage,
    buffers: Iterable[Buffer],
    start: Value | None,
    offset: Value,
    addresses: dict[Buffer, Value],
) -> Value:
    """Places buffers one after the other from `start` + `offset`; returns the end's offset."""
    out = values.out
    for buffer in buffers:
        if start is not None:
            addresses[buffer] = _range(out, start, offset)
        if buffer in storage.sizes:
            size = integer(round_up(storage.sizes[buffer], storage.line))
        else:
            size = integer(buffer.dtype.bytes)
            for extent in storage.shapes[buffer]:
                size = out.product(size, values.value(extent))
            size = _padded(out, size, storage.line)
        offset = _sum(out, offset, size)
    return offset


def _range(out: FunctionText, start: Value, offset: Value) -> Value:
    """The pointer to a range of the workspace, as an allocation of its own for alias analysis."""
    return start if offset.number == 0 else out.move(start, offset).alone()


def _sum(out: FunctionText, a: Value, b: Value) -> Value:
    if a.number == 0:
        return b
    if a.number is None or b.number is None:
        return out.op("add", a, b)
    return integer(a.number + b.number)


def _padded(out: FunctionText, size: Value, line: int) -> Value:
    return out.op("and", out.op("add", size, integer(line - 1)), integer(-line))
