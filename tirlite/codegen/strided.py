"""Loads lanes that lie few elements apart: whole vectors from the first one to the last, and what is wanted of them."""

from __future__ import annotations

from tirlite.codegen import memory
from tirlite.codegen.llvm.text import FunctionText
from tirlite.codegen.llvm.values import Value, element_type, integer
from tirlite.codegen.memory import Place
from tirlite.ir import DType, Expr, IntImm, Ramp

# Lanes further apart are loaded one by one.
_MOST = 4


def stride_of(place: Place, index: Expr) -> int | None:
    """How many elements lie between lanes, where these are few and more than one; else None."""
    if not isinstance(index, Ramp) or not isinstance(index.stride, IntImm) or place.strides[-1].number != 1:
        return None
    dtype = place.buffer.dtype
    is_plain = dtype.lanes == 1 and not dtype.is_bool and not place.buffer.volatile
    return index.stride.value if is_plain and 2 <= index.stride.value <= _MOST and index.lanes > 1 else None


def load(out: FunctionText, place: Place, first: Value, stride: int, dtype: DType, note: str = "") -> Value:
    """The elements from a pointer on, each so many behind the one before.

    As many vectors as that lie from the first element to the last, of which the last one ends there: none reaches out
    of the array.
    """
    lanes = dtype.lanes
    last = (stride - 1) * (lanes - 1)
    begins = [*range(0, last, lanes), last]
    kind = element_type(place.buffer.dtype)
    found = memory.load(out, place, first, dtype, note)
    for number, begin in enumerate(begins[1:], start=1):
        vector = memory.load(out, place, out.move(first, integer(begin), kind), dtype, note)
        picked = [_picked(stride * lane, lane, lanes, begins, number) for lane in range(lanes)]
        mask = ", ".join(f"i32 {each}" for each in picked)
        shuffled = f"shufflevector {found.typed}, {vector.typed}, <{lanes} x i32> <{mask}>"
        found = out.value(dtype, shuffled, found, vector)
    return found


def _picked(element: int, lane: int, lanes: int, begins: list[int], number: int) -> int:
    """Where the element of a lane is, among the lanes found in vectors before this one, and those of this one."""
    own = next(place for place, begin in enumerate(begins) if element < begin + lanes)
    if own == number:
        return lanes + element - begins[own]
    # The first vector still holds elements, those behind it lanes.
    return element if own == 0 and number == 1 else lane
