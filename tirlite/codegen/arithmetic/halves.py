"""Converts float16 and bfloat16, which are held in registers as their 16 bits, to and from f32.

Arithmetic is done in f32 and rounded once more. For + - * / and the square root that equals rounding the exact result,
since f32's 24 digits are at least 2 * 11 + 2. If the processor has no conversion instructions, formulas convert: LLVM
would call library functions that a process may lack.
"""

from __future__ import annotations

from tirlite.codegen.arithmetic.formulas import Formula, call_formula
from tirlite.codegen.llvm.text import FunctionText
from tirlite.codegen.llvm.values import Value, register_type
from tirlite.ir import DType, TypeCode, f32, f64, i16, i32, u16
from tirlite.ir.formula import Term

_F32_INF = 0x7F800000


def widen(out: FunctionText, value: Value) -> Value:
    """A float16 or bfloat16 as f32, exactly."""
    dtype = value.dtype
    formula = _from_bf16 if dtype.code is TypeCode.BFLOAT else _from_f16
    bits, wide = value.of(u16.with_lanes(dtype.lanes)), f32.with_lanes(dtype.lanes)
    if formula is _from_f16 and out.module.processor.converts_halves:
        half = out.computed(bits.dtype, f"bitcast {bits.typed} to {_half(bits.dtype)}", bits)
        return out.computed(wide, f"fpext {_half(bits.dtype)} {half.text} to {register_type(wide)}", half)
    return call_formula(out, f"{dtype.scalar}.to.f32", formula, wide, bits)


def narrow(out: FunctionText, value: Value, target: DType) -> Value:
    """An f32 or f64 rounded to the nearest float16 or bfloat16, ties to even."""
    source = value.dtype.scalar
    formula = _NARROWINGS[target.code, source]
    bits, kind = u16.with_lanes(target.lanes), register_type(target)
    if target.code is TypeCode.FLOAT and out.module.processor.converts_halves:
        if source == f64:
            value = call_formula(out, "f64.to.odd.f32", _to_odd_f32, f32.with_lanes(target.lanes), value)
        half = out.computed(bits, f"fptrunc {value.typed} to {_half(bits)}", value)
        return out.computed(target, f"bitcast {_half(bits)} {half.text} to {kind}", half)
    return call_formula(out, f"{source}.to.{target.scalar}", formula, bits, value).of(target)


def _half(bits: DType) -> str:
    """LLVM's half type with as many lanes as the u16 type `bits`."""
    return register_type(bits).replace("i16", "half")


def gather_digits(out: FunctionText, value: Value) -> Value:
    """A 64-bit integer rounded to odd at f64's precision, so that rounding it again to fewer digits is correct."""
    return call_formula(out, f"{value.dtype.scalar}.to.odd", _gathered, value.dtype, value)


def fused(out: FunctionText, operands: list[Value]) -> Value:
    """`a * b + c` rounded once: in f64 the product is exact, and the sum is rounded to odd."""
    dtype = operands[0].dtype
    terms = [widen(out, operand) for operand in operands]
    return narrow(out, call_formula(out, "fused.to.odd", _fused_to_odd, f64.with_lanes(dtype.lanes), *terms), dtype)


def _from_f16(bits: Term) -> Term:
    wide = bits.to(i32)
    # The exponent bias differs by 112. Multiplying handles denormals too.
    scaled = ((wide & 0x7FFF) << 13).as_type(f32) * 2.0**112
    special = (wide & 0x7C00).equals(0x7C00)
    magnitude = special.where(scaled.bits | _F32_INF, scaled.bits)
    return (magnitude | ((wide & 0x8000) << 16)).as_type(f32)


def _from_bf16(bits: Term) -> Term:
    return (bits.to(i32) << 16).as_type(f32)


def _to_f16(value: Term) -> Term:
    bits = value.bits
    size = bits & 0x7FFFFFFF
    rounded = (size + 0xFFF + ((size >> 13) & 1)) - (112 << 23) >> 13
    # The last bit of the f32 0.5 is worth the smallest f16, so the addition rounds to a multiple of that.
    tiny = (size.as_type(f32) + 0.5).bits - 0x3F000000
    magnitude = (size < 0x38800000).where(tiny, rounded)
    magnitude = (size >= 0x477FF000).where(0x7C00, magnitude)
    magnitude = (size > _F32_INF).where((size >> 13) & 0x1FF | 0x7E00, magnitude)
    return (magnitude | ((bits >> 16) & 0x8000)).to(i16)


def _to_bf16(value: Term) -> Term:
    bits = value.bits
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    is_nan = (bits & 0x7FFFFFFF) > _F32_INF
    return is_nan.where(bits >> 16 | 0x40, rounded).to(i16)


def _to_odd_f32(value: Term) -> Term:
    """An f64 rounded to odd in f32: an inexact value gets an odd last bit, so that rounding it again is right."""
    near = value.to(f32)
    back = near.to(f64)
    away = (abs(back) > abs(value)).where(near.bits - 1, near.bits + 1)
    is_right = (near.bits & 1).differs(0) | back.equals(value) | value.differs(value)
    return is_right.where(near.bits, away).as_type(f32)


def _fused_to_odd(a: Term, b: Term, c: Term) -> Term:
    product = a.to(f64) * b.to(f64)
    c = c.to(f64)
    total = product + c
    # The exact rounding error of the sum.
    part = total - product
    error = (product - (total - part)) + (c - part)
    up = (error > 0.0).where(1, total.bits.like(-1))
    outwards = (total < 0.0).where(up.like(0) - up, up)
    is_right = (total.bits & 1).differs(0) | error.equals(0.0) | error.differs(error)
    return is_right.where(total.bits, total.bits + outwards).as_type(f64)


def _gathered(value: Term) -> Term:
    gathered = (value & 0x7FF).differs(0).where(value.like(0x800), 0)
    high = value & -(1 << 53)
    is_short = high.equals(0) | high.equals(-(1 << 53)) if value.dtype.is_signed else high.equals(0)
    return is_short.where(value, (value & -0x800) | gathered)


_NARROWINGS: dict[tuple[TypeCode, DType], Formula] = {
    (TypeCode.FLOAT, f32): _to_f16,
    (TypeCode.FLOAT, f64): lambda value: _to_f16(_to_odd_f32(value)),
    (TypeCode.BFLOAT, f32): _to_bf16,
    (TypeCode.BFLOAT, f64): lambda value: _to_bf16(_to_odd_f32(value)),
}
