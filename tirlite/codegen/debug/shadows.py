"""A buffer in, the memory beside it out that knows who wrote each of its bytes.

Each declaration of storage, an Allocate or a fresh View, has a number from 1 to 255, its owner. A byte of the shadow is
the owner that wrote the byte of the buffer, or 0 for none. What another owner wrote is as good as never written: so a
buffer that shares its bytes with others, one after the other, is still seen to be read before it is written, and so is
one that was overwritten by another. Two declarations that are 255 apart have the same owner; between those a fault may
go unseen, but none is made up.
"""

from __future__ import annotations

from math import gcd

from tirlite.codegen import memory
from tirlite.codegen.debug.marks import Flag
from tirlite.codegen.environment import Environment
from tirlite.codegen.memory import Place
from tirlite.codegen.text import FunctionText
from tirlite.ir import Buffer, DType
from tirlite.record import record

_OWNERS = 255


@record
class Window:
    """What is known of a buffer beside its place: extents, bytes, and its shadow, if it has one.

    `owner` is an i8; in a function that is called, its caller says which.
    """

    extents: tuple[str, ...]
    bytes: str
    shadow: Place | None
    owner: str


class ShadowEnvironment(Environment):
    """An environment that knows the extents and the shadow of each buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.windows: dict[Buffer, Window] = {}
        self.owners = 0
        self.shadow_notes: dict[Buffer, str] = {}  # what ends the accesses of shadows, as `notes` those of buffers

    def next_owner(self) -> str:
        self.owners += 1
        number = (self.owners - 1) % _OWNERS + 1
        return str(number if number < 128 else number - 256)

    def open(self, buffer: Buffer, window: Window, root: str = "") -> None:
        """Says what is known of a buffer that has been placed; its shadow leads into the memory at `root`."""
        self.windows[buffer] = window
        for operand in (*window.extents, window.bytes):
            self.keep(operand, "i64")
        if window.shadow is not None:
            self.lead(window.shadow.pointer, root)
            self.keep(window.owner, "i8")


def word(dtype: DType) -> str:
    """The type of the shadow of a value."""
    scalar = f"i{8 * dtype.scalar.bytes}"
    return scalar if dtype.lanes == 1 else f"<{dtype.lanes} x {scalar}>"


def owned(out: FunctionText, owner: str, dtype: DType) -> str:
    """The shadow of a good value, as an operand without its type."""
    size = dtype.scalar.bytes
    kind, wide = f"i{8 * size}", word(dtype)
    if not owner.startswith("%"):
        number = int.from_bytes(bytes([int(owner) % 256]) * size, "little", signed=True)
        return str(number) if dtype.lanes == 1 else f"splat ({kind} {number})"
    each = int.from_bytes(b"\1" * size, "little")
    value = owner if size == 1 else out.value(f"mul {kind} {out.value(f'zext i8 {owner} to {kind}')}, {each}")
    if dtype.lanes == 1:
        return value
    first = out.value(f"insertelement {wide} poison, {kind} {value}, i64 0")
    return out.value(f"shufflevector {wide} {first}, {wide} poison, <{dtype.lanes} x i32> zeroinitializer")


def read(out: FunctionText, window: Window, pointer: str, dtype: DType, note: str = "") -> Flag:
    """Which lanes of the value with its shadow at `pointer` are poisoned."""
    assert window.shadow is not None
    kind = word(dtype)
    found = out.value(f"load {kind}, ptr {pointer}, align {_alignment(window, dtype)}{note}")
    return Flag(out.value(f"icmp ne {kind} {found}, {owned(out, window.owner, dtype)}"), dtype.lanes)


def write(out: FunctionText, window: Window, pointer: str, dtype: DType, flag: Flag | None, note: str = "") -> None:
    """Says that a value was written, whose poisoned lanes are flagged."""
    kind, value = word(dtype), owned(out, window.owner, dtype)
    if flag is not None:
        zero = "0" if dtype.lanes == 1 else "zeroinitializer"
        value = out.value(f"select {flag.kind} {flag.operand}, {kind} {zero}, {kind} {value}")
    out.effect(f"store {kind} {value}, ptr {pointer}, align {_alignment(window, dtype)}{note}")


def _alignment(window: Window, dtype: DType) -> int:
    assert window.shadow is not None
    return gcd(window.shadow.align, dtype.scalar.bytes)


def element(out: FunctionText, window: Window, offset: str) -> str:
    """The address of the shadow of the element at an element offset."""
    assert window.shadow is not None
    return memory.address(out, window.shadow, offset)


def fill(out: FunctionText, pointer: str, size: str, owner: str) -> None:
    """Says that all bytes belong to an owner, or, with "0", to none."""
    declaration = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
    out.module.declarations.setdefault("llvm.memset.p0.i64", declaration)
    out.effect(f"call void @llvm.memset.p0.i64(ptr {pointer}, i8 {owner}, i64 {size}, i1 false)")


def forget(out: FunctionText, pointer: str, size: str, owner: str) -> None:
    """Takes from an owner what it has written before; what belongs to others stays theirs."""
    name = "tirlite.forget"
    out.module.inlined.setdefault(name, _FORGET)
    out.effect(f"call void @{name}(ptr {pointer}, i64 {size}, i8 {owner})")


_FORGET = """define internal void @tirlite.forget(ptr noalias %bytes, i64 %size, i8 %owner) nounwind {
entry:
  %some = icmp sgt i64 %size, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %byte = getelementptr inbounds i8, ptr %bytes, i64 %i
  %found = load i8, ptr %byte
  %own = icmp eq i8 %found, %owner
  %left = select i1 %own, i8 0, i8 %found
  store i8 %left, ptr %byte
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %size
  br i1 %more, label %loop, label %done
done:
  ret void
}"""
