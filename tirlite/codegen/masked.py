"""Emits accesses of the lanes that are on: of neighbours at one address, else at an address a lane.

Addresses carry no promises here: where no lane is on, they may lie anywhere.
"""

from __future__ import annotations

from tirlite.codegen import memory
from tirlite.codegen.llvm.text import FunctionText
from tirlite.codegen.llvm.values import Value, element_type, memory_type, register_type, zero
from tirlite.codegen.memory import Place
from tirlite.codegen.refused import Refused
from tirlite.ir import DType, Expr, Ramp, bool_, handle, u8
from tirlite.ir.checked import is_checked


def address(out: FunctionText, place: Place, indices: list[Value]) -> Value:
    """The address of the element at scalar indices; with a vector for the last one, those of all lanes."""
    total: Value | None = None
    for index, stride in zip(indices, place.strides, strict=True):
        lanes = index.dtype.lanes
        term = index if stride.number == 1 else out.op("mul", index, out.splat(stride, lanes))
        total = term if total is None else out.op("add", out.splat(total, lanes), term)
    assert total is not None
    kind = element_type(place.buffer.dtype)
    if total.dtype.lanes == 1:
        return out.move(place.pointer, total, kind, flags="")
    lanes = total.dtype.lanes
    moved = f"getelementptr {kind}, {place.pointer.typed}, {register_type(total.dtype)} {total.text}"
    return out.value(handle.with_lanes(lanes), moved, place.pointer, total)


def is_gather(place: Place, index: Expr) -> bool:
    """Whether lanes load words from wherever a vector of indices says: machines may have an instruction for that."""
    dtype = place.buffer.dtype
    is_word = dtype.lanes == 1 and dtype.bytes in (4, 8) and not place.buffer.volatile
    return is_word and not isinstance(index, Ramp) and not is_checked(index)


def all_lanes(lanes: int) -> Value:
    """A mask that leaves nothing out."""
    return Value(bool_.with_lanes(lanes), "splat (i1 true)")


def load(out: FunctionText, place: Place, pointer: Value, on: Value, dtype: DType, note: str = "") -> Value:
    """The elements at a pointer, or at those of a vector, in the lanes that are on; 0 in the others."""
    demand_plain(place)
    kind = u8.with_lanes(dtype.lanes) if dtype.is_bool else dtype
    many = pointer.dtype.lanes > 1
    name = f"llvm.masked.{'gather' if many else 'load'}.{_kind(kind)}.{_pointers(pointer)}"
    align = memory.alignment(place)
    nothing = zero(kind)
    operands = (pointer, on, nothing)
    out.declare(memory_type(kind), name, operands)
    given = f"{register_type(pointer.dtype)} align {align} {pointer.text}, {on.typed}, {nothing.typed}"
    found = out.value(kind, f"call {memory_type(kind)} @{name}({given}){note}", *operands)
    return out.compare("icmp ne", found, nothing) if dtype.is_bool else found


def store(out: FunctionText, place: Place, pointer: Value, on: Value, value: Value, note: str = "") -> None:
    """Stores lanes that are on, the first one first."""
    demand_plain(place)
    if value.dtype.is_bool:
        value = out.cast("zext", value, u8.with_lanes(value.dtype.lanes))
    name = f"llvm.masked.{'scatter' if pointer.dtype.lanes > 1 else 'store'}.{_kind(value.dtype)}.{_pointers(pointer)}"
    operands = (value, pointer, on)
    out.declare("void", name, operands)
    align = memory.alignment(place)
    given = f"{value.typed}, {register_type(pointer.dtype)} align {align} {pointer.text}, {on.typed}"
    out.effect(f"call void @{name}({given}){note}", *operands)


def demand_plain(place: Place) -> None:
    """Refuses what has no masked form."""
    if place.buffer.volatile or place.buffer.dtype.lanes > 1:
        raise Refused("a masked access of a volatile buffer, or of vector elements", "index the elements one by one")


def _kind(dtype: DType) -> str:
    """How the name of an intrinsic tells the type of a vector of values, as they are in memory."""
    kind = memory_type(dtype).split(" x ")[-1].rstrip(">")
    short = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}.get(kind, kind)
    return f"v{dtype.lanes}{short}"


def _pointers(pointer: Value) -> str:
    return "p0" if pointer.dtype.lanes == 1 else f"v{pointer.dtype.lanes}p0"
