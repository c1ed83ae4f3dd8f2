"""A value and a type in, the converted value out: every pair of scalar types."""

from __future__ import annotations

from tirlite.codegen.text import FunctionText
from tirlite.codegen.values import Value, constant, is_half, suffix
from tirlite.ir import DType, TypeCode, f32, f64, i64, u16


def convert(out: FunctionText, value: Value, target: DType) -> Value:
    """Integers wrap, floats round to nearest even, float to integer saturates and takes nan to 0; all but 0 is true."""
    source = value.dtype
    if source == target:
        return value
    if is_half(source):
        if target.is_bool:
            return _half_to_bool(out, value)
        from tirlite.codegen.halves import widen

        return convert(out, widen(out, value), target)
    if is_half(target):
        return _to_half(out, value, target)
    if target.is_bool:
        return out.compare("fcmp une" if source.is_float else "icmp ne", value, constant(0, source))
    if source.is_float and target.is_float:
        return out.cast("fpext" if target.bits > source.bits else "fptrunc", value, target)
    if source.is_float:
        return out.call(
            target, f"llvm.fpto{'s' if target.is_signed else 'u'}i.sat.{suffix(target)}.{suffix(source)}", value
        )
    if target.is_float:
        return out.cast("sitofp" if source.is_signed else "uitofp", value, target)
    if target.bits == source.bits:
        return value.of(target)
    if target.bits < source.bits:
        return out.cast("trunc", value, target)
    return out.cast("sext" if source.is_signed else "zext", value, target)


def _half_to_bool(out: FunctionText, value: Value) -> Value:
    dtype = value.dtype
    magnitude = out.op("and", value, constant(0x7FFF, u16.with_lanes(dtype.lanes)))
    return out.compare("icmp ne", magnitude, constant(0, dtype))


def _to_half(out: FunctionText, value: Value, target: DType) -> Value:
    """Rounded once: what f32 or f64 cannot hold is never rounded to it on the way."""
    from tirlite.codegen.halves import gather_digits, narrow

    source = value.dtype
    if source.is_float:
        return narrow(out, value, target)
    # Integers that f32 does not hold are beyond the range of float16, before and after rounding.
    is_exact = source.bits < 32 or target.code is TypeCode.FLOAT
    if source.bits == 64 and not is_exact:
        value = gather_digits(out, value)
    between = (f32 if is_exact else f64).with_lanes(source.lanes)
    return narrow(out, convert(out, value, between), target)


def to_index(out: FunctionText, value: Value) -> Value:
    """An index of any integer type as i64, or a vector of them."""
    return convert(out, value, i64.with_lanes(value.dtype.lanes))
