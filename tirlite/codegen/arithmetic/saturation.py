"""Emits conversions of floats to integers, which saturate and take nan to 0.

LLVM has an intrinsic for that, but keeps loops with it from going by vectors. Comparisons and an instruction that is
undefined beyond the ends say the same, and do not.
"""

from __future__ import annotations

from tirlite.codegen.llvm.text import FunctionText
from tirlite.codegen.llvm.values import Value, constant, suffix
from tirlite.ir import DType, i32


def to_integer(out: FunctionText, value: Value, target: DType) -> Value:
    """The float rounded towards zero, or the nearest number that there is; 0 of nan."""
    if target.bits >= 32 and target.scalar != i32:
        kind = "s" if target.is_signed else "u"
        return out.call(target, f"llvm.fpto{kind}i.sat.{suffix(target)}.{suffix(value.dtype)}", value)
    between = i32.with_lanes(target.lanes)
    low, high = (constant(end, value.dtype) for end in (target.min, target.max))
    if target.bits < 32:
        # Nan becomes the lowest, which is 0 where there is no sign.
        value, number = _within(out, value, low, high), value
        result = out.cast("trunc", out.cast("fptosi", value, between), target)
        return _zero_of_nan(out, number, result) if target.is_signed else result
    # f32 has no such number as the last of i32, so the first one beyond decides.
    beyond = constant(target.max + 1, value.dtype)
    result = out.cast("fptosi", value, between)
    result = out.select(out.compare("fcmp oge", value, beyond), constant(target.max, target), result)
    result = out.select(out.compare("fcmp olt", value, low), constant(target.min, target), result)
    return _zero_of_nan(out, value, result)


def _within(out: FunctionText, value: Value, low: Value, high: Value) -> Value:
    above = out.select(out.compare("fcmp ogt", value, low), value, low)
    return out.select(out.compare("fcmp olt", above, high), above, high)


def _zero_of_nan(out: FunctionText, number: Value, result: Value) -> Value:
    return out.select(out.compare("fcmp uno", number, number), constant(0, result.dtype), result)
