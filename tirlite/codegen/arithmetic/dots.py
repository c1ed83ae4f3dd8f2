"""Dot products of narrow integers: by the processor's instruction for the types if any, else by multiply and add."""

from __future__ import annotations

from tirlite.codegen.llvm.text import FunctionText
from tirlite.codegen.llvm.values import Value, constant, zero
from tirlite.ir import DType, i8, i32, i64, u8
from tirlite.ir.dot import dot_name
from tirlite.target import Processor

_NEON = {"s8 s8": "sdot", "u8 u8": "udot", "u8 s8": "usdot"}
_BYTES = "u8 s8"
# The highest bit of each byte of an i32.
_TOP_BITS = -0x7F7F7F80
_MULTIPLY_ADD = {128: "sse2.pmadd.wd", 256: "avx2.pmadd.wd", 512: "avx512.pmaddw.d.512"}


def dot(out: FunctionText, total: Value, a: Value, b: Value) -> Value:
    """Adds to each lane of `total` the dot product of the corresponding group of lanes of `a` and `b`."""
    group = b.dtype.lanes // total.dtype.lanes
    processor = out.module.processor
    if total.dtype.scalar == i32 and _is_turned(a, b, group, processor):
        return _by_other_sign(out, total, a, b)
    if a.dtype.lanes < b.dtype.lanes:
        a = _repeated(out, a, total.dtype.lanes)
    if dot_name(a.dtype, b.dtype) not in processor.dots:
        a, b = b, a
    if dot_name(a.dtype, b.dtype) not in processor.dots:
        return _by_products(out, total, a, b, group)
    lanes = total.dtype.lanes
    most = processor.vector_bits // 32
    width = min(lanes, most)
    if width < 4 or lanes & (lanes - 1) or total.dtype.scalar != i32:
        return _by_products(out, total, a, b, group)
    parts = []
    for first in range(0, lanes, width):
        own = [_part(out, each, first * wide, width * wide) for each, wide in ((total, 1), (a, group), (b, group))]
        parts.append(_instruction(out, processor, *own))
    return out.side_by_side(parts)


def any_of_group(out: FunctionText, flags: Value, lanes: int, group: int) -> Value:
    """For each of `lanes` sums, whether any flag of its group of lanes is set; a single group serves all sums."""
    found, *others = (out.shuffled(flags, [*range(place, flags.dtype.lanes, group)]) for place in range(group))
    for each in others:
        found = out.op("or", found, each)
    return found if found.dtype.lanes == lanes else out.splat(found, lanes)


def _instruction(out: FunctionText, processor: Processor, total: Value, a: Value, b: Value) -> Value:
    """Emits the processor's dot product of vectors whose width it supports."""
    bits = 32 * total.dtype.lanes
    if processor.family == "aarch64":
        name = _NEON[dot_name(a.dtype, b.dtype)]
        return out.call(total.dtype, f"llvm.aarch64.neon.{name}.v4i32.v16i8", total, a, b)
    if a.dtype.bits == 16 and _BYTES not in processor.dots:
        return out.op("add", total, out.call(total.dtype, f"llvm.x86.{_MULTIPLY_ADD[bits]}", a, b))
    name = "vpdpbusd" if a.dtype.bits == 8 else "vpdpwssd"
    # As i32: the form of the intrinsic up to LLVM 21, which later versions still accept.
    operands = [out.cast("bitcast", each, total.dtype) for each in (a, b)]
    return out.call(total.dtype, f"llvm.x86.avx512.{name}.{bits}", total, *operands)


def _is_turned(a: Value, b: Value, group: int, processor: Processor) -> bool:
    """Whether one group of bytes meets bytes of the same sign, and the processor only has the mixed-sign product."""
    is_own = dot_name(a.dtype, b.dtype) in processor.dots
    is_alike = a.dtype.bits == 8 and a.dtype.scalar == b.dtype.scalar
    return is_alike and not is_own and a.dtype.lanes == group and _BYTES in processor.dots


def _by_other_sign(out: FunctionText, total: Value, a: Value, b: Value) -> Value:
    """The same-sign product by the mixed-sign instruction: flips the top bits of `a`, subtracts what that added."""
    other = (u8 if a.dtype.is_signed else i8).with_lanes(a.dtype.lanes)
    # As one i32: on a broadcast vector, LLVM's instruction selection for this xor may not terminate.
    turned = out.op("xor", out.cast("bitcast", a, i32), constant(_TOP_BITS, i32))
    off = dot(out, zero(total.dtype), constant(128 if a.dtype.is_signed else -128, other), b)
    return out.op("sub", dot(out, total, out.cast("bitcast", turned, other), b), off)


def _repeated(out: FunctionText, a: Value, lanes: int) -> Value:
    """Repeats one group of lanes; its bits are broadcast as a scalar, so that a broadcasting load can do it."""
    bits = a.dtype.bits * a.dtype.lanes
    whole = {32: i32, 64: i64}.get(bits)
    if whole is None:
        return out.shuffled(a, [*range(a.dtype.lanes)] * lanes)
    spread = out.splat(out.cast("bitcast", a, whole), lanes)
    return out.cast("bitcast", spread, a.dtype.scalar.with_lanes(a.dtype.lanes * lanes))


def _by_products(out: FunctionText, total: Value, a: Value, b: Value, group: int) -> Value:
    for place in range(group):
        picked = range(place, b.dtype.lanes, group)
        first, second = (_widened(out, out.shuffled(each, picked), total.dtype) for each in (a, b))
        total = out.op("add", total, out.op("mul", first, second))
    return total


def _widened(out: FunctionText, value: Value, dtype: DType) -> Value:
    if value.dtype.lanes != dtype.lanes:
        value = out.extract(value, 0)
    return out.cast("sext" if value.dtype.is_signed else "zext", value, dtype)


def _part(out: FunctionText, value: Value, first: int, lanes: int) -> Value:
    return value if lanes == value.dtype.lanes else out.shuffled(value, [*range(first, first + lanes)])
