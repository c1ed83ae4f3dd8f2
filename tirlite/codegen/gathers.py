"""Loads lanes that are not adjacent by shuffles of vectors, where loads share vectors or lanes are close together.

When an image is resized, the indices of neighbouring pixels grow slowly. A vector comparison tests at run time whether
all lanes lie in a window of twice their number; otherwise each lane is loaded by itself.
The loads `x[2 * j]` and `x[2 * j + 1]` for adjacent j take the even and the odd elements of the same two vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tirlite.analysis.loops.patterns import parted
from tirlite.codegen import memory
from tirlite.codegen.arithmetic import convert, to_index
from tirlite.codegen.llvm.text import FunctionText
from tirlite.codegen.llvm.values import Value, constant, integer, is_half
from tirlite.codegen.memory import Place
from tirlite.ir import (
    Add,
    Allocate,
    Cast,
    DType,
    Expr,
    IntImm,
    Let,
    Load,
    Ramp,
    Stmt,
    Store,
    const,
    i32,
    i64,
    u8,
    u16,
    walk,
)
from tirlite.ir.checked import is_checked
from tirlite.ir.walk import loads_in, may_skip_parts

# The widths in bits of the vectors that permute instructions take.
_WIDTHS = (128, 256, 512)


def is_gathered(out: FunctionText, place: Place, index: Expr) -> bool:
    """Whether the load at a vector of indices is emitted as a gather or a permute."""
    dtype = place.buffer.dtype
    if dtype.lanes > 1 or dtype.is_bool or place.buffer.volatile or isinstance(index, Ramp) or is_checked(index):
        return False
    return dtype.bits >= 32 or _are_permuted(out, place, dtype.with_lanes(index.dtype.lanes))


def narrowest(index: Expr) -> Expr:
    """The vector of indices; without its cast if it was cast from 32-bit integers."""
    return index.value if isinstance(index, Cast) and index.value.dtype.scalar == i32 else index


def gathered(out: FunctionText, place: Place, indices: list[Value], dtype: DType, note: str) -> Value:
    """The elements at indices of which all are scalars but the last, a vector; they are in bounds."""
    *row, last = indices
    row = [to_index(out, each) for each in row]
    if not _are_permuted(out, place, dtype):
        return _one_by_one(out, place, [*row, to_index(out, last)], dtype, note)
    window = 2 * dtype.lanes
    end = out.op("sub", place.extents[-1], integer(window))
    first = out.intrinsic("smin", to_index(out, out.extract(last, 0)), end)
    # The difference of 32-bit indices fits 32 bits as an unsigned number.
    apart = out.op("sub", last, out.splat(convert(out, first, last.dtype.scalar), dtype.lanes))
    is_apart = out.any_lane(out.compare("icmp uge", apart, constant(window, apart.dtype)))
    is_far = out.op("or", is_apart, out.compare("icmp slt", first, integer(0)))
    near, far, done = out.label("near"), out.label("far"), out.label("done")
    out.branch_if(is_far, far, near)
    out.start(near)
    pointer = memory.address(out, place, memory.offset_in(out, place, [*row, first]))
    permuted = _permuted(out, place, pointer, apart, dtype)
    out.branch(done)
    out.start(far)
    others = _one_by_one(out, place, [*row, to_index(out, last)], dtype, note)
    out.branch(done)
    out.start(done)
    return out.phi(dtype, (permuted, near), (others, far))


def _are_permuted(out: FunctionText, place: Place, dtype: DType) -> bool:
    """Whether the processor can pick lanes of this type out of two vectors."""
    bits = max(dtype.bits, 16) * dtype.lanes * (2 if dtype.bits < 32 else 1)
    is_plain = place.strides[-1].number == 1 and not is_half(dtype)
    return is_plain and out.module.processor.permutes and bits in _WIDTHS[dtype.bits < 32 :]


def _permuted(out: FunctionText, place: Place, pointer: Value, apart: Value, dtype: DType) -> Value:
    """The lanes at the distances `apart` from a pointer, picked from the vector there and the next one."""
    lanes, kind = dtype.lanes, DType(u8.code, dtype.bits)
    if dtype.bits < 32:
        # The two vectors together are one vector of twice as many 16-bit lanes.
        both = memory.load(out, place, pointer, kind.with_lanes(2 * lanes))
        words = both if dtype.bits == 16 else out.cast("zext", both, u16.with_lanes(2 * lanes))
        places = out.shuffled(convert(out, apart, u16.with_lanes(lanes)), [*range(lanes), *[None] * lanes])
        found = out.shuffled(_call(out, "permvar.hi", words, places), range(lanes))
        return (found if dtype.bits == 16 else out.cast("trunc", found, kind.with_lanes(lanes))).of(dtype)
    number = kind.with_lanes(lanes)
    low = memory.load(out, place, pointer, number)
    high = memory.load(out, place, out.move(pointer, integer(dtype.bytes)), number)
    places = convert(out, apart, number)
    found = _call(out, f"vpermi2var.{'d' if dtype.bits < i64.bits else 'q'}", low, places, high)
    return out.cast("bitcast", found, dtype) if dtype.is_float else found.of(dtype)


def _call(out: FunctionText, name: str, *operands: Value) -> Value:
    dtype = operands[0].dtype
    return out.call(dtype, f"llvm.x86.avx512.{name}.{dtype.bits * dtype.lanes}", *operands)


def _one_by_one(out: FunctionText, place: Place, indices: list[Value], dtype: DType, note: str) -> Value:
    pointers = memory.lane_addresses(out, place, indices)
    if dtype.bits >= 32:
        return memory.load_lanes(out, place, pointers, memory.all_lanes(dtype.lanes), dtype, note)
    return memory.gather(out, place, [out.extract(pointers, lane) for lane in range(dtype.lanes)], dtype)


def phases_of(stmts: Iterable[Stmt]) -> Mapping[Load, tuple[int, Expr]]:
    """For strided loads that together cover groups of neighbours: the place in the group, and the first index.

    Such loads use the same vectors.
    """
    found: dict[Load, tuple[int, Expr]] = {}
    for loads in _alike(stmts):
        offsets = {offset for _, offset in loads}
        first, apart = min(offsets), _stride(loads[0][0])
        for load, offset in loads:
            phase = (offset - first) % apart
            if offsets.issuperset(range(offset - phase, offset - phase + apart)):
                base, begin = parted(_ramp(load).base)[0], offset - phase
                found[load] = phase, Add(base, const(begin, i64)) if begin else base
    return found


def _alike(stmts: Iterable[Stmt]) -> Iterator[list[tuple[Load, int]]]:
    """Groups of loads that differ only by a constant in their last index, with that constant.

    A group is within statements that run together.
    """
    together: list[list[tuple[Load, int]]] = []
    for stmt in stmts:
        if not isinstance(stmt, Let | Store | Allocate):
            yield from together
            together = []
        elif not isinstance(stmt, Allocate) and stmt.value.dtype.lanes > 1:
            for load in _strided(stmt.value):
                offset = parted(_ramp(load).base)[1]
                group = next((each for each in together if _is_beside(load, each[0][0])), None)
                if group is None:
                    together.append([(load, offset)])
                else:
                    group.append((load, offset))
    yield from together


def _strided(value: Expr) -> list[Load]:
    """The strided loads of a value; none if the value may be evaluated in part."""
    loads = [load for load in loads_in(value) if load.indices and isinstance(load.indices[-1], Ramp)]
    found = [load for load in loads if _stride(load) > 1]
    return [] if found and any(map(may_skip_parts, walk(value))) else found


def _stride(load: Load) -> int:
    """The stride of a load's lanes, if it is a plain load with a constant stride; else 0."""
    stride = _ramp(load).stride
    is_plain = load.buffer.dtype.lanes == 1 and not load.buffer.volatile
    is_known = is_plain and isinstance(stride, IntImm) and not any(map(is_checked, load.indices))
    return stride.value if is_known and isinstance(stride, IntImm) else 0


def _ramp(load: Load) -> Ramp:
    last = load.indices[-1]
    assert isinstance(last, Ramp)
    return last


def _is_beside(load: Load, other: Load) -> bool:
    if load.buffer is not other.buffer or load.dtype != other.dtype or _stride(load) != _stride(other):
        return False
    from tirlite.ir.equal import are_equal  # most kernels need none

    base, of = parted(_ramp(load).base)[0], parted(_ramp(other).base)[0]
    return are_equal((*load.indices[:-1], base), (*other.indices[:-1], of))
