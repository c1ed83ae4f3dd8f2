"""An operator and the values of its operands in, the value of the result out."""

from __future__ import annotations

from tirlite.codegen.text import FunctionText
from tirlite.codegen.values import Value, constant, is_half
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
_SEQUENCES_OF_REALS = (FloorDiv, FloorMod, Min, Max)
_SEQUENCES_OF_INTEGERS = (FloorDiv, FloorMod, TruncDiv, TruncMod, ShiftLeft, ShiftRight)
_COMPARISONS: dict[type[Expr], tuple[str, str, str]] = {  # on signed integers, on unsigned, on floats
    EQ: ("eq", "eq", "oeq"),
    NE: ("ne", "ne", "une"),
    LT: ("slt", "ult", "olt"),
    LE: ("sle", "ule", "ole"),
    GT: ("sgt", "ugt", "ogt"),
    GE: ("sge", "uge", "oge"),
}


def binary(out: FunctionText, kind: type[Expr], a: Value, b: Value) -> Value:
    """`kind` of two operands of one type."""
    dtype = a.dtype
    if is_half(dtype):
        from tirlite.codegen.halves import narrow, widen

        return narrow(out, binary(out, kind, widen(out, a), widen(out, b)), dtype)
    if dtype.is_float and kind in _SEQUENCES_OF_REALS:
        from tirlite.codegen.reals import real_operation

        return real_operation(out, kind, a, b)
    if kind in _SEQUENCES_OF_INTEGERS:
        from tirlite.codegen.integers import integer_operation

        return integer_operation(out, kind, a, b)
    if kind in (Min, Max) and dtype.is_integer:
        return out.intrinsic(("s" if dtype.is_signed else "u") + ("min" if kind is Min else "max"), a, b)
    on_integers, on_floats, on_bools = _PLAIN[kind]
    return out.op(on_bools if dtype.is_bool else on_floats if dtype.is_float else on_integers, a, b)


def compare(out: FunctionText, kind: type[Expr], a: Value, b: Value) -> Value:
    """`kind` of two operands of one type; with a nan only `!=` holds."""
    if is_half(a.dtype):
        from tirlite.codegen.halves import widen

        return compare(out, kind, widen(out, a), widen(out, b))
    signed, unsigned, real = _COMPARISONS[kind]
    if a.dtype.is_float:
        return out.compare(f"fcmp {real}", a, b)
    return out.compare(f"icmp {signed if a.dtype.is_signed else unsigned}", a, b)


def unary(out: FunctionText, kind: type[Expr], a: Value) -> Value:
    dtype = a.dtype
    if kind is Neg and is_half(dtype):
        return out.op("xor", a, constant(0x8000, u16.with_lanes(dtype.lanes)))
    if kind is Neg:
        return out.unary("fneg", a) if dtype.is_float else out.op("sub", constant(0, dtype), a)
    assert kind in (BitNot, Not)
    return out.op("xor", a, constant(1 if dtype.is_bool else -1, dtype))
