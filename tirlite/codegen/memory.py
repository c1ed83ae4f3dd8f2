"""Emits addresses, loads and stores of buffers, and holds the places of a function's variables and buffers.
Index arithmetic is in i64, with `nsw`, and addresses are `inbounds`: an access out of bounds is undefined, and one in
bounds cannot overflow, as no buffer is larger than 2^62 bytes. Addresses of masked lanes carry no such flags: lanes
that are off may point anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from tirlite.codegen.llvm.text import FunctionText
from tirlite.codegen.llvm.values import (
    Value,
    constant,
    element_type,
    integer,
    memory_type,
    register_type,
    undefined,
    zero,
)
from tirlite.codegen.refused import Refused
from tirlite.ir.checked import bare, is_checked, unmasked
from tirlite.ir.dtype import DType, bool_, handle, i64, u8, u16, u32, u64
from tirlite.ir.expr import Add, Buffer, Call, Cast, Expr, IntImm, Load, Max, Min, Mul, Ramp, Select, Sub, Var
from tirlite.ir.loop_values import Counted, author_name, in_written_order
from tirlite.ir.op import Op
from tirlite.ir.stmt import SeqStmt, Stmt, Store
from tirlite.ir.walk import is_constant, loads_in, statements_of, walk
from tirlite.record import record

# Constant offsets up to this are folded at compile time; larger ones are out of bounds or very rare.
_FAR = 1 << 40

# The largest stride that is loaded by shuffles; lanes further apart are loaded one by one.
_MOST_APART = 4
# 32-bit lanes with this stride are loaded by transposing blocks of 4 x 4.
_FOUR = 4

# How deep sums are searched for constants.
_DEEP = 4

_LARGEST_DIVISOR = 1 << 12
_BUDGET = 64


@record
class Place:
    """Where a buffer lies: its address, the strides of its axes in elements, and its proved alignment in bytes.

    `extents`: the values at its declaration; the variables they were computed from may have changed since.
    """

    buffer: Buffer
    pointer: Value
    strides: tuple[Value, ...]
    align: int
    extents: tuple[Value, ...]


class Environment:
    """The values of variables and the places of buffers at the point that is being emitted."""

    def __init__(self) -> None:
        self.variables: dict[Var, Value] = {}
        self.places: dict[Buffer, Place] = {}
        self.notes: Mapping[Buffer, str] = {}  # the alias metadata of each buffer's accesses in the current nest
        self.loops: tuple[Counted, ...] = ()  # the loops around
        self.mixed: frozenset[Buffer] = frozenset()  # see `mixed_in`
        self.phases: dict[Load, tuple[int, Expr]] = {}  # of loads that share vectors, see `codegen.gathers`
        self.costs: dict[Stmt, float] = {}  # of leaf statements, see `codegen.loops.estimate`

    def counted(self) -> list[tuple[str, Value]]:
        """The variables of the loops around with their values, named as in messages."""
        return [(author_name(var), self.variables[var]) for var in in_written_order(self.loops)]


def mixed_in(body: SeqStmt) -> frozenset[Buffer]:
    """The buffers that store one of two selected values, as in `x[i] = min(x[i], y[i])`."""
    return frozenset(store.buffer for store in statements_of(body, Store) if store.indices and _is_picked(store.value))


def _is_picked(value: Expr) -> bool:
    is_extremum = isinstance(value, Min | Max) and value.dtype.is_float
    return is_extremum or isinstance(value, Select) or (isinstance(value, Call) and value.op is Op.IF_THEN_ELSE)


def natural_alignment(dtype: DType) -> int:
    """The alignment in bytes of one lane."""
    return dtype.scalar.bytes


def alignment_of(param: Buffer) -> int:
    """The alignment in bytes that a parameter is declared to have."""
    return param.alignment or natural_alignment(param.dtype)


def offset_in(out: FunctionText, place: Place, indices: list[Value]) -> Value:
    """The row-major element offset of scalar i64 indices; the constant part is added last."""
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


def apart_in(place: Place, indices: tuple[Expr, ...]) -> tuple[list[Expr], int] | None:
    """Splits constants off the indices: the rests, and the constants' offset in elements; None if unknown."""
    far = 0
    rests: list[Expr] = []
    for index, stride in zip(indices, place.strides, strict=True):
        if type(index) is Call and index.op is Op.CHECKED:
            return None
        rest, known = _apart(index, _DEEP) if stride.number is not None else (index, 0)
        if known and abs(known * (stride.number or 0)) >= _FAR:
            return None
        far += known * (stride.number or 0)
        rests.append(IntImm(i64, 0) if rest is None else rest)
    return None if all(isinstance(rest, IntImm) for rest in rests) else (rests, far)


def _apart(index: Expr, depth: int) -> tuple[Expr | None, int]:
    """Splits a sum into its variable part and the constant added to it; the first is None if there is none."""
    if type(index) is IntImm:
        return None, index.value
    if type(index) not in (Add, Sub) or index.dtype is not i64 or not depth:
        return index, 0
    assert isinstance(index, Add | Sub)
    is_sum = type(index) is Add
    (a, more), (b, less) = _apart(index.a, depth - 1), _apart(index.b, depth - 1)
    known = more + less if is_sum else more - less
    if b is None:
        return a, known
    if a is None:
        return (b, known) if is_sum else (index, 0)
    return (type(index)(a, b), known) if known else (index, 0)


def beside(out: FunctionText, place: Place, indices: list[Value], far: int) -> Value:
    """The address `far` elements after scalar i64 indices, computed from a nearby address that was used before.

    Rows of a tile differ only by constants, so LLVM need not discover that they share a base address.
    """
    strides = " ".join(each.text for each in place.strides)
    kind = element_type(place.buffer.dtype)
    name = f"{kind} {place.pointer.text} {' '.join(each.text for each in indices)} by {strides}"
    if (found := out.near(name)) is not None and abs(far - found[1]) < _FAR:
        pointer, passed = found
        return pointer if far == passed else out.move(pointer, integer(far - passed), kind)
    offset = offset_in(out, place, indices)
    offset = integer(offset.number + far) if offset.number is not None else out.op("add nsw", offset, integer(far))
    pointer = address(out, place, offset)
    out.accessed(name, pointer, far)
    return pointer


def address(out: FunctionText, place: Place, offset: Value) -> Value:
    """The address of the element at `offset`."""
    return place.pointer if offset.number == 0 else out.move(place.pointer, offset, element_type(place.buffer.dtype))


def load(out: FunctionText, place: Place, pointer: Value, dtype: DType, note: str = "") -> Value:
    """The value of type `dtype` at `pointer`, the address of an element.

    `note`: metadata to append to the instruction, as in `store`.
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
    """A vector of the elements at `pointers`, one per lane."""
    result = undefined(dtype)
    scalar = _scalar_element(place)
    for lane, pointer in enumerate(pointers):
        result = out.insert(result, load(out, place, pointer, scalar), lane)
    return result


def scatter(out: FunctionText, place: Place, pointers: list[Value], value: Value) -> None:
    """Stores each lane to its own address, in order."""
    _scalar_element(place)
    for lane, pointer in enumerate(pointers):
        store(out, place, pointer, out.extract(value, lane))


def _scalar_element(place: Place) -> DType:
    if place.buffer.dtype.lanes > 1:
        raise Refused("a vector of vector elements that are not neighbours", "index them one by one")
    return place.buffer.dtype


def alignment(place: Place) -> int:
    """The proved alignment in bytes of every element."""
    return gcd(place.align, place.buffer.dtype.bytes)


def _volatile(place: Place) -> str:
    return "volatile " if place.buffer.volatile else ""


def stride_between(place: Place, index: Expr) -> int | None:
    """The distance between lanes in elements if it is small and more than 1; else None."""
    if not isinstance(index, Ramp) or not isinstance(index.stride, IntImm) or place.strides[-1].number != 1:
        return None
    dtype = place.buffer.dtype
    is_plain = dtype.lanes == 1 and not dtype.is_bool and not place.buffer.volatile
    return index.stride.value if is_plain and 2 <= index.stride.value <= _MOST_APART and index.lanes > 1 else None


def pointers_apart(out: FunctionText, place: Place, first: Value, apart: int, lanes: int) -> list[Value]:
    """The addresses of lanes `apart` elements from each other, at constant offsets from the first."""
    kind = element_type(place.buffer.dtype)
    return [out.move(first, integer(apart * lane), kind) for lane in range(lanes)]


def is_reversed(place: Place, index: Expr) -> bool:
    """Whether the lanes are adjacent in descending order."""
    is_back = isinstance(index, Ramp) and is_constant(index.stride, -1)
    is_plain = place.buffer.dtype.lanes == 1 and not place.buffer.volatile
    return is_back and is_plain and place.strides[-1].number == 1


def load_reversed(out: FunctionText, place: Place, first: Value, dtype: DType, note: str = "") -> Value:
    """Loads adjacent elements in descending order from `first`."""
    return _reversed(out, load(out, place, _end(out, place, first, dtype), dtype, note))


def store_reversed(out: FunctionText, place: Place, first: Value, value: Value, note: str = "") -> None:
    store(out, place, _end(out, place, first, value.dtype), _reversed(out, value), note)


def _end(out: FunctionText, place: Place, first: Value, dtype: DType) -> Value:
    """The address of the last lane, the lowest one."""
    return out.move(first, integer(1 - dtype.lanes), element_type(place.buffer.dtype))


def _reversed(out: FunctionText, vector: Value) -> Value:
    """The lanes of a vector in reverse order."""
    lanes = vector.dtype.lanes
    return out.shuffled(vector, range(lanes)[::-1])


def load_strided(
    out: FunctionText, place: Place, first: Value, stride: int, dtype: DType, note: str, phase: int | None
) -> Value:
    """Loads elements `stride` apart, starting at `first`, by shuffles of vectors.
    The vectors cover the elements from the first to the last, and the last vector ends there, so none reaches out of
    the array. With a `phase`, the offset of the first element from the pointer, they cover whole groups of `stride`
    elements. Bytes with stride 2 are also half of 16-bit words, which is cheaper if they are to be widened.
    """
    lanes = dtype.lanes
    goes_by_blocks = stride == _FOUR <= lanes and dtype.scalar.bits == 32 and lanes & (lanes - 1) == 0
    if phase is not None and goes_by_blocks and not out.module.processor.permutes:
        return _one_of_four(out, place, first, dtype, note, phase)
    last = (stride - 1) * (lanes - (phase is None))
    begins = [*range(0, last, lanes), last]
    kind = element_type(place.buffer.dtype)
    found = start = vector = load(out, place, first, dtype, note)
    for number, begin in enumerate(begins[1:], start=1):
        vector = load(out, place, out.move(first, integer(begin), kind), dtype, note)
        picked = [_picked((phase or 0) + stride * lane, lane, lanes, begins, number) for lane in range(lanes)]
        found = out.shuffled(found, picked, vector)
    is_half = dtype.scalar == u8 and stride == 2 and lanes % 4 == 0
    return Value(dtype, found.text, found.home, words=_words(out, start, vector, phase)) if is_half else found


def _one_of_four(out: FunctionText, place: Place, first: Value, dtype: DType, note: str, phase: int) -> Value:
    """Loads every fourth 32-bit element, where the others are loaded too: LLVM shares the first steps among them.

    Each block of 4 x 4 elements is transposed by itself, since no cheaper instruction moves elements across blocks.
    """
    lanes, kind, four = dtype.lanes, element_type(place.buffer.dtype), dtype.with_lanes(_FOUR)
    groups = [load(out, place, out.move(first, integer(_FOUR * at), kind), four, note) for at in range(lanes)]
    rows = [out.side_by_side(groups[row::_FOUR]) for row in range(_FOUR)]
    blocks = range(0, lanes, _FOUR)
    half, odd = 2 * (phase // 2), 2 * (phase % 2)
    paired = [each + at for each in blocks for at in (half, lanes + half, half + 1, lanes + half + 1)]
    left, right = (out.shuffled(rows[at], paired, rows[at + 1]) for at in (0, 2))
    return out.shuffled(left, [each + odd + at for each in blocks for at in (0, 1, lanes, lanes + 1)], right)


def _words(out: FunctionText, start: Value, end: Value, phase: int | None) -> Value:
    """Every second byte of two vectors as 16-bit integers: those at `phase`, or those from the first to the last."""
    pairs = u16.with_lanes(start.dtype.lanes // 2)

    def half(vector: Value, behind: int) -> Value:
        words = out.cast("bitcast", vector, pairs)
        return out.op("lshr", words, constant(8, pairs)) if behind else out.op("and", words, constant(255, pairs))

    return out.side_by_side([half(start, phase or 0), half(end, 1 if phase is None else phase)])


def _picked(element: int, lane: int, lanes: int, begins: list[int], number: int) -> int:
    """The shuffle index of a lane's element, in the lanes found so far and the vector `number`."""
    own = next(place for place, begin in enumerate(begins) if element < begin + lanes)
    if own == number:
        return lanes + element - begins[own]
    # Before the second vector is added, `found` still holds elements as loaded; later it holds lanes in place.
    return element if own == 0 and number == 1 else lane


def lane_addresses(out: FunctionText, place: Place, indices: list[Value]) -> Value:
    """The address at scalar indices; if the last index is a vector, the addresses of its lanes."""
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


def all_lanes(lanes: int) -> Value:
    """A mask with all lanes on."""
    return Value(bool_.with_lanes(lanes), "splat (i1 true)")


def load_lanes(out: FunctionText, place: Place, pointer: Value, on: Value, dtype: DType, note: str = "") -> Value:
    """Loads the lanes that are on, from a pointer or from a vector of pointers; the others are 0."""
    demand_plain(place)
    kind = u8.with_lanes(dtype.lanes) if dtype.is_bool else dtype
    many = pointer.dtype.lanes > 1
    name = f"llvm.masked.{'gather' if many else 'load'}.{_kind(kind)}.{_pointers(pointer)}"
    align = alignment(place)
    nothing = zero(kind)
    operands = (pointer, on, nothing)
    out.declare(memory_type(kind), name, operands)
    given = f"{register_type(pointer.dtype)} align {align} {pointer.text}, {on.typed}, {nothing.typed}"
    found = out.value(kind, f"call {memory_type(kind)} @{name}({given}){note}", *operands)
    return out.compare("icmp ne", found, nothing) if dtype.is_bool else found


def apart_under_mask(out: FunctionText, place: Place, indices: tuple[Expr, ...]) -> int:
    """The distance between lanes in elements, if vectors under masks and shuffles load them; else 1."""
    has_masks = out.module.processor.has_masks(place.buffer.dtype.bytes) and not is_checked(indices[-1])
    apart = stride_between(place, unmasked(indices[-1])) if has_masks else None
    return apart if apart is not None and apart < _FOUR <= place.buffer.dtype.bytes else 1


def load_masked(
    out: FunctionText, place: Place, indices: tuple[Expr, ...], pointer: Value, on: Value, dtype: DType, note: str
) -> Value:
    """Loads the lanes that are on at masked indices, from their `masked_pointer`; the others are 0."""
    if (apart := apart_under_mask(out, place, indices)) == 1:
        return load_lanes(out, place, pointer, on, dtype, note)
    lanes, kind, off = dtype.lanes, element_type(place.buffer.dtype), zero(on.dtype)
    found: Value | None = None
    for begin in range(0, apart * lanes, lanes):
        inside = range(begin, begin + lanes)
        here = out.shuffled(on, [lanes if each % apart else each // apart for each in inside], off)
        part = load_lanes(out, place, out.move(pointer, integer(begin), kind), here, dtype, note)
        places = [apart * lane - begin for lane in range(lanes)]
        if found is None:
            found = out.shuffled(part, [place if place < lanes else None for place in places])
        else:
            found = out.shuffled(
                found, [lanes + at if at in range(lanes) else lane for lane, at in enumerate(places)], part
            )
    assert found is not None
    return found


def store_lanes(out: FunctionText, place: Place, pointer: Value, on: Value, value: Value, note: str = "") -> None:
    """Stores the lanes that are on, in order."""
    demand_plain(place)
    if value.dtype.is_bool:
        value = out.cast("zext", value, u8.with_lanes(value.dtype.lanes))
    name = f"llvm.masked.{'scatter' if pointer.dtype.lanes > 1 else 'store'}.{_kind(value.dtype)}.{_pointers(pointer)}"
    if pointer.dtype.lanes == 1 and value.dtype.scalar.bytes < 4:
        on = _computed(out, on)
    operands = (value, pointer, on)
    out.declare("void", name, operands)
    align = alignment(place)
    given = f"{value.typed}, {register_type(pointer.dtype)} align {align} {pointer.text}, {on.typed}"
    out.effect(f"call void @{name}({given}){note}", *operands)


def _computed(out: FunctionText, on: Value) -> Value:
    """The mask passed through an empty asm, so that LLVM knows nothing about it.

    For a constant mask of only the first lane, LLVM 22 stores four bytes on x86 where elements are bytes truncated from
    words.
    """
    lanes = on.dtype.lanes
    bits = on if lanes >= 8 else out.cast("zext", on, u8.with_lanes(lanes))
    whole = {2: u16, 4: u32, 8: u8, 16: u16, 32: u32, 64: u64}.get(lanes)
    if whole is None:
        return on
    kept = out.cast("bitcast", bits, whole)
    kept = out.value(whole, f'call {memory_type(whole)} asm "", "=r,0"({kept.typed})', kept)
    if lanes >= 8:
        return out.cast("bitcast", kept, on.dtype)
    bits = out.cast("bitcast", kept, bits.dtype)
    return out.compare("icmp ne", bits, zero(bits.dtype))


def demand_plain(place: Place) -> None:
    """Refuses buffers that masked accesses do not support."""
    if place.buffer.volatile or place.buffer.dtype.lanes > 1:
        raise Refused("a masked access of a volatile buffer, or of vector elements", "index the elements one by one")


def _kind(dtype: DType) -> str:
    """The type suffix of an intrinsic's name for a vector in memory."""
    kind = memory_type(dtype).split(" x ")[-1].rstrip(">")
    short = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}.get(kind, kind)
    return f"v{dtype.lanes}{short}"


def _pointers(pointer: Value) -> str:
    return "p0" if pointer.dtype.lanes == 1 else f"v{pointer.dtype.lanes}p0"


def largest_divisor(expr: Expr) -> int:
    """The greatest power of two up to 4096 that provably divides `expr`; powers of two survive wrapping."""
    divisor = _LARGEST_DIVISOR
    stack, seen = [expr], 0
    while stack:
        node = stack.pop()
        seen += 1
        if seen > _BUDGET:
            return 1
        if isinstance(node, (Add, Sub)):
            stack += [node.a, node.b]
        elif is_checked(node):
            stack.append(bare(node))
        else:
            divisor = min(divisor, _of_product(node))
    return divisor


def _of_product(expr: Expr) -> int:
    divisor = 1
    stack, seen = [expr], 0
    while stack and seen <= _BUDGET:
        node = stack.pop()
        seen += 1
        if isinstance(node, Mul):
            stack += [node.a, node.b]
        elif isinstance(node, IntImm):
            divisor *= node.value & -node.value or _LARGEST_DIVISOR
        elif isinstance(node, Var) and node.dim is not None:
            divisor *= node.dim.multiple_of & -node.dim.multiple_of
    return min(_LARGEST_DIVISOR, divisor)


def asks_floats(index: Expr) -> bool:
    """Whether an index is cast from a float."""
    return type(index) not in (Var, IntImm) and any(
        isinstance(node, Cast) and node.value.dtype.is_float for node in walk(index)
    )


def value_at(store: Store, indices: tuple[Expr, ...]) -> Expr:
    """The value of a store, which loads the element that it updates at the indices that were computed for it."""
    if indices is store.indices or any(load.buffer.volatile for load in loads_in(*store.indices)):
        return store.value
    from tirlite.ir.equal import are_equal
    from tirlite.ir.rewrite import rewrite

    def known(load: Load) -> Load:
        is_same = load.buffer is store.buffer and are_equal(load.indices, store.indices)
        return load.replaced(indices=indices) if is_same else load

    value = rewrite(store.value, {Load: known})
    assert isinstance(value, Expr)
    return value
