"""A value and two types in, the converted value out: every pair of scalar types."""

from __future__ import annotations

from tirlite.codegen.text import FunctionText
from tirlite.codegen.types import constant, register_type, suffix
from tirlite.ir import DType, i64


def convert(out: FunctionText, value: str, source: DType, target: DType) -> str:
    """Integers wrap, floats round to nearest even, float to integer saturates and takes nan to 0; all but 0 is true."""
    if source == target:
        return value
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


def to_index(out: FunctionText, value: str, dtype: DType) -> str:
    """An index of any integer type as i64, or a vector of them."""
    return convert(out, value, dtype, i64.with_lanes(dtype.lanes))
