"""Makes the shadow of a buffer: memory that records which declaration wrote each of its bytes.

Each declaration of storage, an Allocate or a fresh View, has an owner number from 1 to 255. A shadow byte holds the
owner that wrote the byte of the buffer, or 0 for none. Bytes that another owner wrote count as never written, so reads
before the first write are detected even in buffers that share storage. Declarations 255 apart have the same owner;
between them a fault may be missed, but none is invented.
"""

from __future__ import annotations

from math import gcd

from tirlite.codegen import memory
from tirlite.codegen.llvm.text import Definition, FunctionText
from tirlite.codegen.llvm.values import FALSE, Value, constant, integer, zero
from tirlite.codegen.memory import Environment, Place
from tirlite.ir import Buffer, DType, i8
from tirlite.record import record

_OWNERS = 255


@record
class Tracked:
    """What debug code knows of a buffer beside its place: its bytes, its shadow if it has one, and its owner.

    `owner` is an i8; a callee receives it from its caller.
    """

    bytes: Value
    shadow: Place | None
    owner: Value


class Shadows:
    """State shared by the functions of a module: the owners, and the numbers of buffers for poison reports."""

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []
        self._numbers: dict[Buffer, Value] = {}
        self._owners = 0

    def number(self, buffer: Buffer) -> Value:
        if buffer not in self._numbers:
            self._numbers[buffer] = integer(len(self.buffers))
            self.buffers.append(buffer)
        return self._numbers[buffer]

    def next_owner(self) -> Value:
        number = self._owners % _OWNERS + 1
        self._owners += 1
        return constant(number if number < 128 else number - 256, i8)


class ShadowEnvironment(Environment):
    """An environment that also knows the bytes and the shadow of each buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.tracked: dict[Buffer, Tracked] = {}
        self.shadow_notes: dict[Buffer, str] = {}  # alias metadata for shadow accesses, as `notes` for buffer accesses


def _word(dtype: DType) -> DType:
    """The integer type of the shadow of a value of type `dtype`."""
    return DType(i8.code, 8 * dtype.scalar.bytes, dtype.lanes)


def _owned(out: FunctionText, owner: Value, dtype: DType) -> Value:
    """The shadow of a value without poison."""
    size, word = dtype.scalar.bytes, _word(dtype)
    if owner.number is not None:
        return constant(int.from_bytes(bytes([owner.number % 256]) * size, "little", signed=True), word)
    each = constant(int.from_bytes(b"\1" * size, "little"), word.scalar)
    value = owner if size == 1 else out.op("mul", out.cast("zext", owner, word.scalar), each)
    return out.splat(value, dtype.lanes)


def read(out: FunctionText, tracked: Tracked, pointer: Value, dtype: DType, note: str = "") -> Value:
    """The poison flags of the lanes of a value whose shadow is at `pointer`."""
    found = out.load(_word(dtype), pointer, f", align {_alignment(tracked, dtype)}{note}")
    return out.compare("icmp ne", found, _owned(out, tracked.owner, dtype))


def write(
    out: FunctionText, tracked: Tracked, pointer: Value, dtype: DType, flag: Value | None, note: str = ""
) -> None:
    """Updates the shadow after a store; `flag` has the poisoned lanes."""
    value = _owned(out, tracked.owner, dtype)
    if flag is not None:
        value = out.select(flag, zero(_word(dtype)), value)
    out.store(value, pointer, f", align {_alignment(tracked, dtype)}{note}")


def _alignment(tracked: Tracked, dtype: DType) -> int:
    assert tracked.shadow is not None
    return gcd(tracked.shadow.align, dtype.scalar.bytes)


def element(out: FunctionText, tracked: Tracked, offset: Value) -> Value:
    """The address of the shadow of the element at `offset`."""
    assert tracked.shadow is not None
    return memory.address(out, tracked.shadow, offset)


def fill(out: FunctionText, pointer: Value, size: Value, owner: Value) -> None:
    """Sets the owner of all bytes; 0 for none."""
    out.run("llvm.memset.p0.i64", pointer, owner, size, FALSE)


def forget(out: FunctionText, pointer: Value, size: Value, owner: Value) -> None:
    """Clears the bytes that belong to `owner`; those of other owners stay."""
    name = "tirlite.forget"
    out.module.inlined.setdefault(name, _FORGET)
    out.run(name, pointer, size, owner)


_FORGET = Definition(
    "tirlite.forget",
    "internal ",
    "void @tirlite.forget(ptr noalias %bytes, i64 %size, i8 %owner) nounwind",
    """entry:
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
  ret void""",
)
