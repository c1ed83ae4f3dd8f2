"""Emits addresses, loads and stores of a buffer at indices, and holds where a function's variables and buffers are.

Index arithmetic is in i64. It carries `nsw` and addresses `inbounds`: an access outside its buffer has no meaning, and
one inside cannot overflow, as no buffer is larger than 2^62 bytes.
"""

from __future__ import annotations

from math import gcd

from tirlite.codegen.llvm.text import FunctionText
from tirlite.codegen.llvm.values import Value, element_type, integer, memory_type, undefined, zero
from tirlite.codegen.refused import Refused
from tirlite.ir import Buffer, DType, Stmt, Var, u8
from tirlite.ir.loop_values import Counted, author_name, in_written_order
from tirlite.record import record

# Offsets up to this are added up before code is written; an access beyond is out of bounds, or as rare.
_FAR = 1 << 40


@record
class Place:
    """Where a buffer lies: its first byte, the strides of its axes in elements, and the proved alignment in bytes.

    `extents` are those that it was declared with, whatever has become of what they were computed from.
    """

    buffer: Buffer
    pointer: Value
    strides: tuple[Value, ...]
    align: int
    extents: tuple[Value, ...]


class Environment:
    """What each variable and buffer is at the point that is being written."""

    def __init__(self) -> None:
        self.variables: dict[Var, Value] = {}
        self.places: dict[Buffer, Place] = {}
        self.notes: dict[Buffer, str] = {}  # what ends the accesses of a buffer in the loop nest that is open
        self.loops: tuple[Counted, ...] = ()  # around what is written
        self.costs: dict[Stmt, float] = {}  # of statements without others inside, see `codegen.work`

    def counted(self) -> list[tuple[str, Value]]:
        """The variables of the loops around, by the names that messages give them."""
        return [(author_name(var), self.variables[var]) for var in in_written_order(self.loops)]


def natural_alignment(dtype: DType) -> int:
    """The alignment in bytes of one lane."""
    return dtype.scalar.bytes


def alignment_of(param: Buffer) -> int:
    """The alignment in bytes that a parameter is declared to have."""
    return param.alignment or natural_alignment(param.dtype)


def offset_in(out: FunctionText, place: Place, indices: list[Value]) -> Value:
    """The element offset of scalar i64 indices, row-major; what is known of it is added last, as one number."""
    total: Value | None = None
    known = 0
    for index, stride in zip(indices, place.strides, strict=True):
        if index.number is not None and stride.number is not None and abs(index.number * stride.number) < _FAR:
            known += index.number * stride.number
            continue
        term = index if stride.number == 1 else out.op("mul nsw", index, stride)
        total = out.op("add nsw", total, term) if total is not None else term
    if total is None:
        return integer(known)
    return out.op("add nsw", total, integer(known)) if known else total


def address(out: FunctionText, place: Place, offset: Value) -> Value:
    """The address of the element at an element offset."""
    return place.pointer if offset.number == 0 else out.move(place.pointer, offset, element_type(place.buffer.dtype))


def load(out: FunctionText, place: Place, pointer: Value, dtype: DType, note: str = "") -> Value:
    """The value of type `dtype` at `pointer`, which lies a whole number of elements from the buffer's first byte.

    `note` ends the instruction, as in `store`.
    """
    kind = memory_type(dtype)
    instruction = f"load {_volatile(place)}{kind}, ptr {pointer.text}, align {alignment(place)}{note}"
    if not dtype.is_bool:
        return out.value(dtype, instruction, pointer)
    in_memory = u8.with_lanes(dtype.lanes)
    return out.compare("icmp ne", out.value(in_memory, instruction, pointer), zero(in_memory))


def store(out: FunctionText, place: Place, pointer: Value, value: Value, note: str = "") -> None:
    if value.dtype.is_bool:
        value = out.cast("zext", value, u8.with_lanes(value.dtype.lanes))
    kind = f"store {_volatile(place)}{value.typed}"
    out.effect(f"{kind}, ptr {pointer.text}, align {alignment(place)}{note}", value, pointer)


def gather(out: FunctionText, place: Place, pointers: list[Value], dtype: DType) -> Value:
    """The vector of the elements at `pointers`, one a lane."""
    result = undefined(dtype)
    scalar = _scalar_element(place)
    for lane, pointer in enumerate(pointers):
        result = out.insert(result, load(out, place, pointer, scalar), lane)
    return result


def scatter(out: FunctionText, place: Place, pointers: list[Value], value: Value) -> None:
    """Stores each lane to its own address, the first lane first."""
    _scalar_element(place)
    for lane, pointer in enumerate(pointers):
        store(out, place, pointer, out.extract(value, lane))


def _scalar_element(place: Place) -> DType:
    if place.buffer.dtype.lanes > 1:
        raise Refused("a vector of vector elements that are not neighbours", "index them one by one")
    return place.buffer.dtype


def alignment(place: Place) -> int:
    """The alignment in bytes that an element is known to have."""
    return gcd(place.align, place.buffer.dtype.bytes)


def _volatile(place: Place) -> str:
    return "volatile " if place.buffer.volatile else ""
