"""A value and two types in, the converted value out: every pair of scalar types."""

from __future__ import annotations

from tirlite.codegen.text import FunctionText
from tirlite.codegen.types import constant, is_half, register_type, suffix
from tirlite.ir import DType, TypeCode, f32, f64, i64, u16


def convert(out: FunctionText, value: str, source: DType, target: DType) -> str:
    """Integers wrap, floats round to nearest even, float to integer saturates and takes nan to 0; all but 0 is true."""
    if source == target:
        return value
    if is_half(source):
        if target.is_bool:
            return _half_to_bool(out, value, source)
        from tirlite.codegen.halves import widen

        return convert(out, widen(out, value, source), f32.with_lanes(source.lanes), target)
    if is_half(target):
        return _to_half(out, value, source, target)
    old, new = register_type(source), register_type(target)
    if target.is_bool:
        comparison = "fcmp une" if source.is_float else "icmp ne"
        return out.value(f"{comparison} {old} {value}, {constant(0, source)}")
    if source.is_float and target.is_float:
        return out.value(f"{'fpext' if target.bits > source.bits else 'fptrunc'} {old} {value} to {new}")
    if source.is_float:
        name = f"llvm.fpto{'s' if target.is_signed else 'u'}i.sat.{suffix(target)}.{suffix(source)}"
        return out.call(new, name, f"{old} {value}")
    if target.is_float:
        return out.value(f"{'sitofp' if source.is_signed else 'uitofp'} {old} {value} to {new}")
    if target.bits == source.bits:
        return value
    if target.bits < source.bits:
        return out.value(f"trunc {old} {value} to {new}")
    return out.value(f"{'sext' if source.is_signed else 'zext'} {old} {value} to {new}")


def _half_to_bool(out: FunctionText, value: str, source: DType) -> str:
    kind = register_type(source)
    magnitude = out.value(f"and {kind} {value}, {constant(0x7FFF, u16.with_lanes(source.lanes))}")
    return out.value(f"icmp ne {kind} {magnitude}, {constant(0, source)}")


def _to_half(out: FunctionText, value: str, source: DType, target: DType) -> str:
    """Rounded once: what f32 or f64 cannot hold is never rounded to it on the way."""
    from tirlite.codegen.halves import gather_digits, narrow

    if source.is_float:
        return narrow(out, value, source, target)
    # Integers that f32 does not hold are beyond the range of float16, before and after rounding.
    is_exact = source.bits < 32 or target.code is TypeCode.FLOAT
    if source.bits == 64 and not is_exact:
        value = gather_digits(out, value, source)
    between = (f32 if is_exact else f64).with_lanes(source.lanes)
    return narrow(out, convert(out, value, source, between), between, target)


def to_index(out: FunctionText, value: str, dtype: DType) -> str:
    """An index of any integer type as i64, or a vector of them."""
    return convert(out, value, dtype, i64.with_lanes(dtype.lanes))
