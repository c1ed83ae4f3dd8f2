"""The buffers of a workspace in, their addresses in the kernel and the function that computes the whole size out."""

from __future__ import annotations

from dataclasses import dataclass

from tirlite.codegen.expressions import Expressions
from tirlite.codegen.faults import any_of, checked_bytes
from tirlite.codegen.storage import LARGEST_BYTES, Home, Storage, padded_bytes
from tirlite.codegen.text import FunctionText
from tirlite.ir import Buffer


@dataclass(frozen=True, slots=True)
class Workspace:
    """What the caller must provide: `bytes`, and where `buffers` is not empty, as much more as the size function says.

    `buffers` are those of symbolic size. The size function returns the total, or -(k + 1) where buffer k has a negative
    extent or makes the total larger than 2^62 bytes.
    """

    bytes: int
    buffers: tuple[Buffer, ...]

    @classmethod
    def of(cls, storage: Storage) -> Workspace:
        in_it = storage.of(Home.WORKSPACE)
        constant = sum(padded_bytes(storage.sizes[b], storage.line) for b in in_it if b in storage.sizes)
        return cls(constant, tuple(b for b in in_it if b not in storage.sizes))

    @property
    def is_empty(self) -> bool:
        return not self.bytes and not self.buffers


def range_addresses(values: Expressions, storage: Storage) -> dict[Buffer, str]:
    """The address of each buffer in `%workspace`: constant sizes first, then the symbolic ones, computed as we go."""
    out = values.out
    addresses: dict[Buffer, str] = {}
    buffers = storage.of(Home.WORKSPACE)
    at = 0
    for buffer in buffers:
        if buffer in storage.sizes:
            addresses[buffer] = _address(out, str(at))
            at += padded_bytes(storage.sizes[buffer], storage.line)
    offset = str(at)
    for buffer in buffers:
        if buffer not in storage.sizes:
            addresses[buffer] = _address(out, offset)
            size = str(buffer.dtype.bytes)
            for extent in buffer.shape:
                size = out.value(f"mul i64 {size}, {values.value(extent)}")
            offset = out.value(f"add i64 {offset}, {_padded(out, size, storage.line)}")
    return addresses


def write_size_function(values: Expressions, workspace: Workspace, line: int) -> None:
    """The body of the size function, whose parameters `values` knows. Nothing wraps unseen."""
    out = values.out
    total = str(workspace.bytes)
    for number, buffer in enumerate(workspace.buffers):
        values.overflows.clear()
        extents = [values.value(extent) for extent in buffer.shape]
        size, bad = checked_bytes(out, buffer, extents)
        # Both are at most 2^62, so that neither sum wraps.
        total = out.value(f"add i64 {total}, {_padded(out, size, line)}")
        large = out.value(f"icmp ugt i64 {total}, {LARGEST_BYTES}")
        impossible, fine = out.label("impossible"), out.label("fine")
        out.branch_if(any_of(out, [bad, large, *values.overflows]), impossible, fine)
        out.start(impossible)
        out.effect(f"ret i64 {-(number + 1)}")
        out.start(fine)
    out.effect(f"ret i64 {total}")


def _address(out: FunctionText, offset: str) -> str:
    return "%workspace" if offset == "0" else out.value(f"getelementptr inbounds i8, ptr %workspace, i64 {offset}")


def _padded(out: FunctionText, size: str, line: int) -> str:
    return out.value(f"and i64 {out.value(f'add i64 {size}, {line - 1}')}, {-line}")
