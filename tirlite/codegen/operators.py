"""An operator and the values of its operands in, the name of the result out."""

from __future__ import annotations

from tirlite.codegen.text import FunctionText
from tirlite.codegen.types import constant, is_half, register_type
from tirlite.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BitAnd,
    BitNot,
    BitOr,
    BitXor,
    Div,
    DType,
    Expr,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mul,
    Neg,
    Not,
    Or,
    ShiftLeft,
    ShiftRight,
    Sub,
    TruncDiv,
    TruncMod,
    f32,
    u16,
)

_PLAIN: dict[type[Expr], tuple[str, str, str]] = {  # on integers, on floats, on bools
    Add: ("add", "fadd", ""),
    Sub: ("sub", "fsub", ""),
    Mul: ("mul", "fmul", ""),
    Div: ("", "fdiv", ""),
    BitAnd: ("and", "", "and"),
    BitOr: ("or", "", "or"),
    BitXor: ("xor", "", "xor"),
    Min: ("", "", "and"),
    Max: ("", "", "or"),
    And: ("", "", "and"),
    Or: ("", "", "or"),
}
_SEQUENCES = (FloorDiv, FloorMod, TruncDiv, TruncMod, ShiftLeft, ShiftRight)
_COMPARISONS: dict[type[Expr], tuple[str, str, str]] = {  # on signed integers, on unsigned, on floats
    EQ: ("eq", "eq", "oeq"),
    NE: ("ne", "ne", "une"),
    LT: ("slt", "ult", "olt"),
    LE: ("sle", "ule", "ole"),
    GT: ("sgt", "ugt", "ogt"),
    GE: ("sge", "uge", "oge"),
}


def binary(out: FunctionText, kind: type[Expr], dtype: DType, a: str, b: str, known: int | None) -> str:
    """`kind` of two operands of type `dtype`; `known` is the integer that `b` is, where it is constant."""
    if is_half(dtype):
        return _binary_of_halves(out, kind, dtype, a, b)
    if kind in _SEQUENCES or (dtype.is_float and kind in (Min, Max)):
        from tirlite.codegen.sequences import sequence

        return sequence(out, kind, dtype, a, b, known)
    if kind in (Min, Max) and dtype.is_integer:
        return out.intrinsic(("s" if dtype.is_signed else "u") + ("min" if kind is Min else "max"), dtype, a, b)
    on_integers, on_floats, on_bools = _PLAIN[kind]
    name = on_bools if dtype.is_bool else on_floats if dtype.is_float else on_integers
    return out.value(f"{name} {register_type(dtype)} {a}, {b}")


def _binary_of_halves(out: FunctionText, kind: type[Expr], dtype: DType, a: str, b: str) -> str:
    from tirlite.codegen.halves import narrow, widen

    wide = f32.with_lanes(dtype.lanes)
    result = binary(out, kind, wide, widen(out, a, dtype), widen(out, b, dtype), None)
    return narrow(out, result, wide, dtype)


def compare(out: FunctionText, kind: type[Expr], dtype: DType, a: str, b: str) -> str:
    """`kind` of two operands of type `dtype`; with a nan only `!=` holds."""
    if is_half(dtype):
        from tirlite.codegen.halves import widen

        return compare(out, kind, f32.with_lanes(dtype.lanes), widen(out, a, dtype), widen(out, b, dtype))
    signed, unsigned, real = _COMPARISONS[kind]
    if dtype.is_float:
        return out.value(f"fcmp {real} {register_type(dtype)} {a}, {b}")
    return out.value(f"icmp {signed if dtype.is_signed else unsigned} {register_type(dtype)} {a}, {b}")


def unary(out: FunctionText, kind: type[Expr], dtype: DType, a: str) -> str:
    name = register_type(dtype)
    if kind is Neg and is_half(dtype):
        return out.value(f"xor {name} {a}, {constant(0x8000, u16.with_lanes(dtype.lanes))}")
    if kind is Neg:
        return out.value(f"fneg {name} {a}" if dtype.is_float else f"sub {name} {constant(0, dtype)}, {a}")
    assert kind in (BitNot, Not)
    return out.value(f"xor {name} {a}, {constant(1 if dtype.is_bool else -1, dtype)}")
