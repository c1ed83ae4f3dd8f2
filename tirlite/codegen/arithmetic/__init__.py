"""Emits the result of an operator or a conversion from the values of its operands.

A float becomes an integer with saturation; nan becomes 0. LLVM's intrinsic for that keeps loops from being vectorized,
so comparisons and the plain conversion, which is undefined out of range, are emitted instead.
"""

from __future__ import annotations

from tirlite.codegen.llvm.text import FunctionText
from tirlite.codegen.llvm.values import Value, constant, is_half, suffix, undefined
from tirlite.codegen.loops.loop_hints import SELDOM
from tirlite.ir import expr as e
from tirlite.ir.dtype import DType, TypeCode, f32, f64, i32, i64, u16

_PLAIN: dict[type[e.Expr], tuple[str, str, str]] = {  # on integers, on floats, on bools
    e.Add: ("add", "fadd", ""),
    e.Sub: ("sub", "fsub", ""),
    e.Mul: ("mul", "fmul", ""),
    e.Div: ("", "fdiv", ""),
    e.BitAnd: ("and", "", "and"),
    e.BitOr: ("or", "", "or"),
    e.BitXor: ("xor", "", "xor"),
    e.Min: ("", "", "and"),
    e.Max: ("", "", "or"),
    e.And: ("", "", "and"),
    e.Or: ("", "", "or"),
}
_TRUNCATING = {
    (f32, i32): "sse.cvttss2si",
    (f32, i64): "sse.cvttss2si64",
    (f64, i32): "sse2.cvttsd2si",
    (f64, i64): "sse2.cvttsd2si64",
}
_SEQUENCES_OF_REALS = (e.FloorDiv, e.FloorMod, e.Min, e.Max)
_SEQUENCES_OF_INTEGERS = (e.FloorDiv, e.FloorMod, e.TruncDiv, e.TruncMod, e.ShiftLeft, e.ShiftRight)
_COMPARISONS: dict[type[e.Expr], tuple[str, str, str]] = {  # on signed integers, on unsigned, on floats
    e.EQ: ("eq", "eq", "oeq"),
    e.NE: ("ne", "ne", "une"),
    e.LT: ("slt", "ult", "olt"),
    e.LE: ("sle", "ule", "ole"),
    e.GT: ("sgt", "ugt", "ogt"),
    e.GE: ("sge", "uge", "oge"),
}


def binary(out: FunctionText, kind: type[e.Expr], a: Value, b: Value) -> Value:
    """The binary operator `kind` on two operands of the same type."""
    dtype = a.dtype
    if is_half(dtype):
        from tirlite.codegen.arithmetic.halves import narrow, widen

        return narrow(out, binary(out, kind, widen(out, a), widen(out, b)), dtype)
    if dtype.is_float and kind in _SEQUENCES_OF_REALS:
        from tirlite.codegen.arithmetic.sequences import real_operation

        return real_operation(out, kind, a, b)
    if kind in _SEQUENCES_OF_INTEGERS:
        from tirlite.codegen.arithmetic.sequences import integer_operation

        return integer_operation(out, kind, a, b)
    if kind in (e.Min, e.Max) and dtype.is_integer:
        return out.intrinsic(("s" if dtype.is_signed else "u") + ("min" if kind is e.Min else "max"), a, b)
    on_integers, on_floats, on_bools = _PLAIN[kind]
    return out.op(on_bools if dtype.is_bool else on_floats if dtype.is_float else on_integers, a, b)


def compare(out: FunctionText, kind: type[e.Expr], a: Value, b: Value) -> Value:
    """The comparison `kind` of two operands of the same type; if one is nan, only `!=` is true."""
    if is_half(a.dtype):
        from tirlite.codegen.arithmetic.halves import widen

        return compare(out, kind, widen(out, a), widen(out, b))
    signed, unsigned, real = _COMPARISONS[kind]
    if a.dtype.is_float:
        return out.compare(f"fcmp {real}", a, b)
    return out.compare(f"icmp {signed if a.dtype.is_signed else unsigned}", a, b)


def unary(out: FunctionText, kind: type[e.Expr], a: Value) -> Value:
    dtype = a.dtype
    if kind is e.Neg and is_half(dtype):
        return out.op("xor", a, constant(0x8000, u16.with_lanes(dtype.lanes)))
    if kind is e.Neg:
        return out.unary("fneg", a) if dtype.is_float else out.op("sub", constant(0, dtype), a)
    assert kind in (e.BitNot, e.Not)
    return out.op("xor", a, constant(1 if dtype.is_bool else -1, dtype))


def convert(out: FunctionText, value: Value, target: DType) -> Value:
    """The cast to `target`: integers wrap, floats round to even, float to integer saturates, nonzero is true."""
    source = value.dtype
    if source == target:
        return value
    if is_half(source):
        if target.is_bool:
            return _half_to_bool(out, value)
        from tirlite.codegen.arithmetic.halves import widen

        return convert(out, widen(out, value), target)
    if is_half(target):
        return _to_half(out, value, target)
    if target.is_bool:
        return out.compare("fcmp une" if source.is_float else "icmp ne", value, constant(0, source))
    if source.is_float and target.is_float:
        return out.cast("fpext" if target.bits > source.bits else "fptrunc", value, target)
    if source.is_float:
        return to_integer(out, value, target)
    if target.is_float:
        return out.cast("sitofp" if source.is_signed else "uitofp", value, target)
    if target.bits == source.bits:
        return value.of(target)
    if target.bits < source.bits:
        return out.cast("trunc", value, target)
    if value.words is not None:
        return convert(out, value.words, target)
    return out.cast("sext" if source.is_signed else "zext", value, target)


def _half_to_bool(out: FunctionText, value: Value) -> Value:
    dtype = value.dtype
    magnitude = out.op("and", value, constant(0x7FFF, u16.with_lanes(dtype.lanes)))
    return out.compare("icmp ne", magnitude, constant(0, dtype))


def _to_half(out: FunctionText, value: Value, target: DType) -> Value:
    """Rounds once: goes through f32 only if f32 holds the value exactly, otherwise through f64."""
    from tirlite.codegen.arithmetic.halves import gather_digits, narrow

    source = value.dtype
    if source.is_float:
        return narrow(out, value, target)
    # An integer that f32 cannot hold is out of float16's range, rounded or not.
    is_exact = source.bits < 32 or target.code is TypeCode.FLOAT
    if source.bits == 64 and not is_exact:
        value = gather_digits(out, value)
    between = (f32 if is_exact else f64).with_lanes(source.lanes)
    return narrow(out, convert(out, value, between), target)


def to_index(out: FunctionText, value: Value) -> Value:
    """An index of any integer type, scalar or vector, as i64."""
    return convert(out, value, i64.with_lanes(value.dtype.lanes))


def to_integer(
    out: FunctionText, value: Value, target: DType, *, is_within: bool = False, is_alone: bool = False
) -> Value:
    """The float rounded towards zero and saturated; nan gives 0.

    `is_within`: every value but nan is known to fit `target`.
    `is_alone`: no vectorized loop contains this, so LLVM's saturating intrinsic may be used.
    """
    is_narrow = target.bits < 32
    if not is_within and is_alone and (converted := _by_instruction(out, value, target)) is not None:
        return converted
    if not is_within and (is_alone or not (is_narrow or target.scalar in (i32, i64))):
        return _saturated(out, value, target)
    between = i32.with_lanes(target.lanes) if is_narrow else target
    number = value
    if is_within:
        number = out.select(out.compare("fcmp ord", value, value), value, constant(0, value.dtype))
    else:  # this turns nan into the least integer
        number = _bounded(out, "fcmp ogt", number, constant(target.min, value.dtype))
        number = _bounded(out, "fcmp olt", number, constant(target.max, value.dtype)) if is_narrow else number
    result = out.cast("fptosi" if between.is_signed else "fptoui", number, between)
    if not is_within and target.is_signed:
        result = out.select(out.compare("fcmp ord", value, value), result, constant(0, between))
    if is_narrow:
        return out.cast("trunc", result, target)
    if is_within:
        return result
    # f32 cannot represent the largest i32, so compare with the value after it.
    beyond = constant(target.max + 1, value.dtype)
    return out.select(out.compare("fcmp oge", value, beyond), constant(target.max, target), result)


def _saturated(out: FunctionText, value: Value, target: DType) -> Value:
    kind = "s" if target.is_signed else "u"
    return out.call(target, f"llvm.fpto{kind}i.sat.{suffix(target)}.{suffix(value.dtype)}", value)


def _by_instruction(out: FunctionText, value: Value, target: DType) -> Value | None:
    """The float as an integer, by an x86 instruction that gives the least integer for all that does not fit.

    A branch that is hardly ever taken makes something else of that: comparing each float beforehand takes longer.
    """
    name = _TRUNCATING.get((value.dtype, target))
    if name is None or out.module.processor.family != "x86-64":
        return None
    vector = out.insert(undefined(value.dtype.with_lanes(16 // value.dtype.bytes)), value, 0)
    found = out.call(target, f"llvm.x86.{name}", vector)
    fails = out.compare("icmp eq", found, constant(target.min, target))
    before, seldom, done = out.block, out.label("rare"), out.label("done")
    out.branch_if(fails, seldom, done, f", !prof {out.module.node(*SELDOM)}")
    out.start(seldom, follows=True)
    chosen = _saturated(out, value, target)
    out.follow(done)
    return out.phi(target, (found, before), (chosen, seldom))


def to_integer_between(out: FunctionText, value: Value, target: DType, low: int, high: int) -> Value:
    """The float rounded towards zero and clamped to `low` .. `high`, a range that contains 0; nan gives 0."""
    if low < 0:
        value = out.select(out.compare("fcmp ord", value, value), value, constant(0, value.dtype))
    value = _bounded(out, "fcmp ogt", value, constant(low, value.dtype))  # if `low` is 0, this turns nan into 0
    value = _bounded(out, "fcmp olt", value, constant(high, value.dtype))
    between = i32 if target.bits <= 32 and i32.min <= low and high <= i32.max else i64
    return convert(out, out.cast("fptosi", value, between.with_lanes(target.lanes)), target)


def _bounded(out: FunctionText, comparison: str, value: Value, end: Value) -> Value:
    return out.select(out.compare(comparison, value, end), value, end)
