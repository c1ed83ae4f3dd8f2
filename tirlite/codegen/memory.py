"""A buffer and indices in, the address, load or store out.

Index arithmetic is in i64. It carries `nsw` and addresses `inbounds`: an access outside its buffer has no meaning, and
one inside cannot overflow, as no buffer is larger than 2^62 bytes.
"""

from __future__ import annotations

from math import gcd

from tirlite.codegen.refused import Refused
from tirlite.codegen.text import FunctionText
from tirlite.codegen.types import element_type, memory_type, register_type
from tirlite.ir import Buffer, DType
from tirlite.record import record


@record
class Place:
    """Where a buffer lies: its first byte, the strides of its axes in elements, and the proved alignment in bytes.

    `extents` are those that it was declared with, whatever has become of what they were computed from.
    """

    buffer: Buffer
    pointer: str
    strides: tuple[str, ...]
    align: int
    extents: tuple[str, ...]


def natural_alignment(dtype: DType) -> int:
    """The alignment in bytes of one lane."""
    return dtype.scalar.bytes


def offset_in(out: FunctionText, place: Place, indices: list[str]) -> str:
    """The element offset of scalar i64 indices, row-major."""
    total = ""
    for index, stride in zip(indices, place.strides, strict=True):
        term = index if stride == "1" else out.value(f"mul nsw i64 {index}, {stride}")
        total = out.value(f"add nsw i64 {total}, {term}") if total else term
    return total or "0"


def address(out: FunctionText, place: Place, offset: str) -> str:
    """The address of the element at an element offset."""
    if offset == "0":
        return place.pointer
    return out.value(f"getelementptr inbounds {element_type(place.buffer.dtype)}, ptr {place.pointer}, i64 {offset}")


def load(out: FunctionText, place: Place, pointer: str, dtype: DType, note: str = "") -> str:
    """The value of type `dtype` at `pointer`, which lies a whole number of elements from the buffer's first byte.

    `note` ends the instruction, as in `store`.
    """
    kind = memory_type(dtype)
    value = out.value(f"load {_volatile(place)}{kind}, ptr {pointer}, align {_alignment(place)}{note}")
    if not dtype.is_bool:
        return value
    zero = "0" if dtype.lanes == 1 else "zeroinitializer"
    return out.value(f"icmp ne {kind} {value}, {zero}")


def store(out: FunctionText, place: Place, pointer: str, dtype: DType, value: str, note: str = "") -> None:
    kind = memory_type(dtype)
    if dtype.is_bool:
        value = out.value(f"zext {register_type(dtype)} {value} to {kind}")
    out.effect(f"store {_volatile(place)}{kind} {value}, ptr {pointer}, align {_alignment(place)}{note}")


def gather(out: FunctionText, place: Place, pointers: list[str], dtype: DType) -> str:
    """The vector of the elements at `pointers`, one a lane."""
    result = "poison"
    scalar = _scalar_element(place)
    for lane, pointer in enumerate(pointers):
        value = load(out, place, pointer, scalar)
        result = out.value(
            f"insertelement {register_type(dtype)} {result}, {register_type(scalar)} {value}, i64 {lane}"
        )
    return result


def scatter(out: FunctionText, place: Place, pointers: list[str], dtype: DType, value: str) -> None:
    """Stores each lane to its own address, the first lane first."""
    scalar = _scalar_element(place)
    for lane, pointer in enumerate(pointers):
        element = out.value(f"extractelement {register_type(dtype)} {value}, i64 {lane}")
        store(out, place, pointer, scalar, element)


def _scalar_element(place: Place) -> DType:
    if place.buffer.dtype.lanes > 1:
        raise Refused("a vector of vector elements that are no neighbours", "index them one by one")
    return place.buffer.dtype


def _alignment(place: Place) -> int:
    return gcd(place.align, place.buffer.dtype.bytes)


def _volatile(place: Place) -> str:
    return "volatile " if place.buffer.volatile else ""
