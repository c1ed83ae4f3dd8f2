"""Arithmetic on integers, with NumPy's values where the hardware would trap or LLVM has none.

x // 0 = x % 0 = 0, INT_MIN // -1 = INT_MIN, and a shift by the width or more drains the number.
Each function takes operands without types and gives the name of the result. `known` is the right operand's value
where it is a constant.
"""

from __future__ import annotations

from tirlite.codegen.text import FunctionText
from tirlite.codegen.types import constant, register_type
from tirlite.ir import DType, bool_


def floor_div(out: FunctionText, dtype: DType, a: str, b: str, known: int | None) -> str:
    kind = register_type(dtype)
    if not dtype.is_signed:
        return _unsigned_div(out, dtype, a, b, known)
    if known is not None and known > 0 and known & (known - 1) == 0:
        return out.value(f"ashr {kind} {a}, {constant(known.bit_length() - 1, dtype)}")
    divisor = _harmless_divisor(out, dtype, a, b, known)
    quotient = out.value(f"sdiv {kind} {a}, {divisor}")
    one_less = out.value(f"sub {kind} {quotient}, {constant(1, dtype)}")
    floor = _select(out, dtype, _rounded_up(out, dtype, a, divisor, quotient), one_less, quotient)
    return _zero_if_by_zero(out, dtype, b, floor, known)


def floor_mod(out: FunctionText, dtype: DType, a: str, b: str, known: int | None) -> str:
    kind = register_type(dtype)
    if not dtype.is_signed:
        return _unsigned_mod(out, dtype, a, b, known)
    if known is not None and known > 0 and known & (known - 1) == 0:
        return out.value(f"and {kind} {a}, {constant(known - 1, dtype)}")
    divisor = _harmless_divisor(out, dtype, a, b, known)
    remainder = out.value(f"srem {kind} {a}, {divisor}")
    wrong_sign = _opposite_sign(out, dtype, remainder, divisor)
    return _select(out, dtype, wrong_sign, out.value(f"add {kind} {remainder}, {divisor}"), remainder)


def trunc_div(out: FunctionText, dtype: DType, a: str, b: str, known: int | None) -> str:
    if not dtype.is_signed:
        return _unsigned_div(out, dtype, a, b, known)
    divisor = _harmless_divisor(out, dtype, a, b, known)
    quotient = out.value(f"sdiv {register_type(dtype)} {a}, {divisor}")
    return _zero_if_by_zero(out, dtype, b, quotient, known)


def trunc_mod(out: FunctionText, dtype: DType, a: str, b: str, known: int | None) -> str:
    if not dtype.is_signed:
        return _unsigned_mod(out, dtype, a, b, known)
    divisor = _harmless_divisor(out, dtype, a, b, known)
    return out.value(f"srem {register_type(dtype)} {a}, {divisor}")


def shift_left(out: FunctionText, dtype: DType, a: str, b: str, known: int | None) -> str:
    return _logical_shift(out, "shl", dtype, a, b, known)


def shift_right(out: FunctionText, dtype: DType, a: str, b: str, known: int | None) -> str:
    if not dtype.is_signed:
        return _logical_shift(out, "lshr", dtype, a, b, known)
    kind = register_type(dtype)
    if known is not None and 0 <= known < dtype.bits:
        return out.value(f"ashr {kind} {a}, {b}")
    amount = out.intrinsic("umin", dtype, b, constant(dtype.bits - 1, dtype))
    return out.value(f"ashr {kind} {a}, {amount}")


def _logical_shift(out: FunctionText, op: str, dtype: DType, a: str, b: str, known: int | None) -> str:
    kind = register_type(dtype)
    if known is not None and 0 <= known < dtype.bits:
        return out.value(f"{op} {kind} {a}, {b}")
    # The amount is reduced first: a shift by the width or more has no value in LLVM, not even one to throw away.
    reduced = out.value(f"and {kind} {b}, {constant(dtype.bits - 1, dtype)}")
    shifted = out.value(f"{op} {kind} {a}, {reduced}")
    within = out.value(f"icmp ult {kind} {b}, {constant(dtype.bits, dtype)}")
    return _select(out, dtype, within, shifted, constant(0, dtype))


def _unsigned_div(out: FunctionText, dtype: DType, a: str, b: str, known: int | None) -> str:
    divisor = _harmless_divisor(out, dtype, a, b, known)
    quotient = out.value(f"udiv {register_type(dtype)} {a}, {divisor}")
    return _zero_if_by_zero(out, dtype, b, quotient, known)


def _unsigned_mod(out: FunctionText, dtype: DType, a: str, b: str, known: int | None) -> str:
    divisor = _harmless_divisor(out, dtype, a, b, known)
    return out.value(f"urem {register_type(dtype)} {a}, {divisor}")


def _harmless_divisor(out: FunctionText, dtype: DType, a: str, b: str, known: int | None) -> str:
    """`b`, or 1 where the division would trap: by zero, and INT_MIN by -1, which 1 gives the right value for."""
    if known is not None and known not in (0, -1):
        return b
    kind = register_type(dtype)
    traps = out.value(f"icmp eq {kind} {b}, {constant(0, dtype)}")
    if dtype.is_signed:
        least = out.value(f"icmp eq {kind} {a}, {constant(dtype.min, dtype)}")
        minus_one = out.value(f"icmp eq {kind} {b}, {constant(-1, dtype)}")
        flags = register_type(bool_.with_lanes(dtype.lanes))
        overflows = out.value(f"and {flags} {least}, {minus_one}")
        traps = out.value(f"or {flags} {traps}, {overflows}")
    return _select(out, dtype, traps, constant(1, dtype), b)


def _zero_if_by_zero(out: FunctionText, dtype: DType, b: str, quotient: str, known: int | None) -> str:
    if known is not None and known != 0:
        return quotient
    by_zero = out.value(f"icmp eq {register_type(dtype)} {b}, {constant(0, dtype)}")
    return _select(out, dtype, by_zero, constant(0, dtype), quotient)


def _rounded_up(out: FunctionText, dtype: DType, a: str, divisor: str, quotient: str) -> str:
    """Whether truncation gave more than the floor: a remainder is left, and its sign is not the divisor's."""
    kind = register_type(dtype)
    product = out.value(f"mul {kind} {quotient}, {divisor}")
    return _opposite_sign(out, dtype, out.value(f"sub {kind} {a}, {product}"), divisor)


def _opposite_sign(out: FunctionText, dtype: DType, remainder: str, divisor: str) -> str:
    kind = register_type(dtype)
    flags = register_type(bool_.with_lanes(dtype.lanes))
    left = out.value(f"icmp ne {kind} {remainder}, {constant(0, dtype)}")
    signs = out.value(f"xor {kind} {remainder}, {divisor}")
    differ = out.value(f"icmp slt {kind} {signs}, {constant(0, dtype)}")
    return out.value(f"and {flags} {left}, {differ}")


def _select(out: FunctionText, dtype: DType, condition: str, yes: str, no: str) -> str:
    kind = register_type(dtype)
    flags = register_type(bool_.with_lanes(dtype.lanes))
    return out.value(f"select {flags} {condition}, {kind} {yes}, {kind} {no}")
