"""Emits conversions of floats to integers, which saturate and take nan to 0.

LLVM has an intrinsic for that, but keeps loops with it from going by vectors. Comparisons and an instruction that is
undefined beyond the ends say the same, and do not.
"""

from __future__ import annotations

from tirlite.codegen.llvm.text import FunctionText
from tirlite.codegen.llvm.values import Value, constant, suffix
from tirlite.ir import DType, i32, i64


def to_integer(
    out: FunctionText, value: Value, target: DType, *, is_within: bool = False, is_alone: bool = False
) -> Value:
    """The float rounded towards zero, or the nearest number that there is; 0 of nan.

    `is_within` if all but nan rounds to a number that there is, `is_alone` if no loop takes this into vectors.
    """
    is_narrow = target.bits < 32
    if not is_within and (is_alone or not (is_narrow or target.scalar in (i32, i64))):
        kind = "s" if target.is_signed else "u"
        return out.call(target, f"llvm.fpto{kind}i.sat.{suffix(target)}.{suffix(value.dtype)}", value)
    between = i32.with_lanes(target.lanes) if is_narrow else target
    number = value
    if is_within or target.is_signed:
        number = out.select(out.compare("fcmp ord", value, value), value, constant(0, value.dtype))
    if not is_within:  # takes nan to 0 where there is no sign
        number = _bounded(out, "fcmp ogt", number, constant(target.min, value.dtype))
        number = _bounded(out, "fcmp olt", number, constant(target.max, value.dtype)) if is_narrow else number
    result = out.cast("fptosi" if between.is_signed else "fptoui", number, between)
    if is_narrow:
        return out.cast("trunc", result, target)
    if is_within:
        return result
    # f32 has no such number as the last of i32, so the first one beyond decides.
    beyond = constant(target.max + 1, value.dtype)
    return out.select(out.compare("fcmp oge", value, beyond), constant(target.max, target), result)


def _bounded(out: FunctionText, comparison: str, value: Value, end: Value) -> Value:
    return out.select(out.compare(comparison, value, end), value, end)
