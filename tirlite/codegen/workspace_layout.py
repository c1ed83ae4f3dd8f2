"""The buffers of a workspace in, their addresses in the kernel and the function that computes the whole size out."""

from __future__ import annotations

from collections.abc import Iterable

from tirlite.codegen.expressions import Expressions
from tirlite.codegen.faults import any_of, checked_bytes
from tirlite.codegen.storage import LARGEST_BYTES, Storage, padded_bytes
from tirlite.codegen.text import FunctionText
from tirlite.codegen.workspace import Workspace, parts_of
from tirlite.ir import Buffer, For
from tirlite.record import record


@record
class WorkerPart:
    """Where the workers of a loop have their ranges: the part of worker 0, and the bytes of each part."""

    start: str
    bytes: str


@record
class Layout:
    """The addresses of a function's own buffers in the workspace, and the parts of the workers of its loops."""

    addresses: dict[Buffer, str]
    parts: dict[For, WorkerPart]


def workspace_layout(values: Expressions, storage: Storage) -> Layout:
    """Writes the computation of all addresses in `%workspace`."""
    out = values.out
    addresses: dict[Buffer, str] = {}
    parts: dict[For, WorkerPart] = {}
    offset = "0"
    for loop, copies in parts_of(storage):
        buffers = storage.ranges[loop]
        if loop is None:
            offset = _line_up(values, storage, buffers, "%workspace", offset, addresses)
        elif buffers:
            size = _line_up(values, storage, buffers, "", "0", {})
            parts[loop] = WorkerPart(_address(out, "%workspace", offset), size)
            offset = _sum(out, offset, _product(out, size, str(copies)))
    return Layout(addresses, parts)


def worker_addresses(values: Expressions, storage: Storage, loop: For, part: WorkerPart) -> dict[Buffer, str]:
    """The address of each buffer inside `loop`, in the function that the worker `%worker` runs."""
    addresses: dict[Buffer, str] = {}
    start = _address(values.out, part.start, values.out.value(f"mul i64 %worker, {part.bytes}"))
    _line_up(values, storage, storage.ranges[loop], start, "0", addresses)
    return addresses


def write_size_function(values: Expressions, workspace: Workspace, line: int) -> None:
    """The body of the size function, whose parameters `values` knows. Nothing wraps unseen."""
    out = values.out
    total = str(workspace.bytes)
    for number, (buffer, copies) in enumerate(zip(workspace.buffers, workspace.copies, strict=True)):
        values.overflows.clear()
        extents = [values.value(extent) for extent in buffer.shape]
        size, bad = checked_bytes(out, buffer, extents)
        if copies > 1:
            bad = any_of(out, [bad, out.value(f"icmp ugt i64 {size}, {LARGEST_BYTES // copies - line}")])
        # Both are at most 2^62, so that neither sum wraps.
        total = _sum(out, total, _product(out, _padded(out, size, line), str(copies)))
        large = out.value(f"icmp ugt i64 {total}, {LARGEST_BYTES}")
        _refuse_if(out, [bad, large, *values.overflows], number)
    for number, buffer in enumerate(workspace.doubtful, start=len(workspace.buffers)):
        values.overflows.clear()
        flags = [out.value(f"icmp slt i64 {values.value(extent)}, 0") for extent in buffer.shape]
        _refuse_if(out, [*flags, *values.overflows], number)
    out.effect(f"ret i64 {total}")


def _refuse_if(out: FunctionText, flags: list[str], number: int) -> None:
    impossible, fine = out.label("impossible"), out.label("fine")
    out.branch_if(any_of(out, flags), impossible, fine)
    out.start(impossible)
    out.effect(f"ret i64 {-(number + 1)}")
    out.start(fine)


def _line_up(
    values: Expressions,
    storage: Storage,
    buffers: Iterable[Buffer],
    start: str,
    offset: str,
    addresses: dict[Buffer, str],
) -> str:
    """Gives each buffer a range behind the one before it, from `offset` behind `start` on, and returns their end."""
    out = values.out
    for buffer in buffers:
        if start:
            addresses[buffer] = _address(out, start, offset)
        if buffer in storage.sizes:
            size = str(padded_bytes(storage.sizes[buffer], storage.line))
        else:
            size = str(buffer.dtype.bytes)
            for extent in buffer.shape:
                size = _product(out, size, values.value(extent))
            size = _padded(out, size, storage.line)
        offset = _sum(out, offset, size)
    return offset


def _address(out: FunctionText, start: str, offset: str) -> str:
    return start if offset == "0" else out.value(f"getelementptr inbounds i8, ptr {start}, i64 {offset}")


def _sum(out: FunctionText, a: str, b: str) -> str:
    if a == "0":
        return b
    return str(int(a) + int(b)) if a.isdecimal() and b.isdecimal() else out.value(f"add i64 {a}, {b}")


def _product(out: FunctionText, a: str, b: str) -> str:
    if b == "1":
        return a
    return str(int(a) * int(b)) if a.isdecimal() and b.isdecimal() else out.value(f"mul i64 {a}, {b}")


def _padded(out: FunctionText, size: str, line: int) -> str:
    return out.value(f"and i64 {out.value(f'add i64 {size}, {line - 1}')}, {-line}")
