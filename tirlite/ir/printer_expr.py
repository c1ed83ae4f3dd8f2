"""Prints an expression as DSL text, by the names in force: explicit types, no more parentheses than needed.

Constants of the types that a Python literal has by itself (i64, f64, bool) print bare, all others are called by their
type: `x[i] * tl.f32(0.5)`. Of an operation on constants alone the first is called by its type in any case, since the
DSL computes with bare literals as Python does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, TypeAlias

from tirlite.ir.dtype import DType, bool_, f64, float_text as digits_of, i64
from tirlite.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Binary,
    BitAnd,
    BitNot,
    BitOr,
    BitXor,
    Broadcast,
    BufferRef,
    Call,
    Cast,
    Compare,
    Div,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    LetExpr,
    Load,
    Max,
    Min,
    Mul,
    Neg,
    Not,
    Or,
    Ramp,
    Select,
    ShiftLeft,
    ShiftRight,
    StringImm,
    Sub,
    TruncDiv,
    TruncMod,
    Unary,
    Var,
)
from tirlite.ir.op import Op
from tirlite.ir.printer_names import Names
from tirlite.show.styled import BEGIN, END

# How tightly Python binds; an operand that binds less tightly than its place demands is put in parentheses.
TERNARY, OR, AND, NOT, COMPARE, BIT_OR, BIT_XOR, BIT_AND, SHIFT, SUM, PRODUCT, SIGN, ATOM = range(13)

# Beyond this many operations in one another, a statement's expressions are spilled into lets.
DEEPEST = 50

# Text, or an expression with the tightness that its place demands; a constant may have to name its type (True).
Piece: TypeAlias = "str | tuple[Expr, int, bool]"

_OPERATORS: dict[type[Expr], tuple[str, int]] = {
    Or: (" or ", OR),
    And: (" and ", AND),
    EQ: (" == ", COMPARE),
    NE: (" != ", COMPARE),
    LT: (" < ", COMPARE),
    LE: (" <= ", COMPARE),
    GT: (" > ", COMPARE),
    GE: (" >= ", COMPARE),
    BitOr: (" | ", BIT_OR),
    BitXor: (" ^ ", BIT_XOR),
    BitAnd: (" & ", BIT_AND),
    ShiftLeft: (" << ", SHIFT),
    ShiftRight: (" >> ", SHIFT),
    Add: (" + ", SUM),
    Sub: (" - ", SUM),
    Mul: (" * ", PRODUCT),
    Div: (" / ", PRODUCT),
    FloorDiv: (" // ", PRODUCT),
    FloorMod: (" % ", PRODUCT),
}
_CONSTANTS = (IntImm, FloatImm)
_SIGNS: dict[type[Expr], tuple[str, int]] = {Neg: ("-", SIGN), BitNot: ("~", SIGN), Not: ("not ", NOT)}
_FUNCTIONS: dict[type[Expr], str] = {Min: "min(", Max: "max(", TruncDiv: "tl.truncdiv(", TruncMod: "tl.truncmod("}


def expr_text(expr: Expr, names: Names) -> tuple[str, int]:
    """The text of `expr`, and how many operations stand in one another in it."""
    out: list[str] = []
    deepest = 0
    stack: list[tuple[Piece, int]] = [((expr, TERNARY, False), 0)]
    while stack:
        piece, depth = stack.pop()
        if isinstance(piece, str):
            out.append(piece)
            continue
        inner, demanded, typed = piece
        kind = type(inner)
        if kind in _CONSTANTS:
            binds, digits = _constant(inner, typed=typed)
            pieces: Sequence[Piece] = (digits,)
        else:
            binds, pieces = _RULES[kind](inner, names)
        deepest = max(deepest, depth)
        if inner is names.mark:
            out.append(BEGIN)
            stack.append((END, 0))
        if binds < demanded:
            out.append("(")
            stack.append((")", 0))
        stack.extend((each, depth + 1) for each in reversed(pieces))
    return "".join(out), deepest


def _binary(expr: Binary | Compare, names: Names) -> tuple[int, Sequence[Piece]]:
    # A literal takes the type of the other side; between two literals the first has to say it.
    typed = type(expr.b) in _CONSTANTS and type(expr.a) in _CONSTANTS
    sign, binds = _OPERATORS[type(expr)]
    left = binds + 1 if binds == COMPARE else binds
    return binds, ((expr.a, left, typed), sign, (expr.b, binds + 1, False))


def _function(expr: Binary, names: Names) -> tuple[int, Sequence[Piece]]:
    typed = type(expr.b) in _CONSTANTS and type(expr.a) in _CONSTANTS
    return ATOM, (_FUNCTIONS[type(expr)], (expr.a, TERNARY, typed), ", ", (expr.b, TERNARY, False), ")")


def _unary(expr: Unary, names: Names) -> tuple[int, Sequence[Piece]]:
    sign, binds = _SIGNS[type(expr)]
    return binds, (sign, (expr.a, binds, True))


def _constant(imm: Any, *, typed: bool) -> tuple[int, str]:
    """A constant as it stands alone, with its type where `typed` demands it or where a literal has another."""
    dtype: DType = imm.dtype
    if isinstance(imm, FloatImm):
        digits = float_text(imm.value, dtype)
        bare = dtype == f64 and digits[0] != '"'
    else:
        digits = str(bool(imm.value)) if dtype.is_bool and imm.value in (0, 1) else str(imm.value)
        bare = dtype in (i64, bool_)
    if typed or not bare:
        return ATOM, f"tl.{dtype}({digits})"
    return (SIGN if digits[0] == "-" else ATOM), digits


def number_text(value: bool | int | float, dtype: DType) -> str:
    """A number of type `dtype` as DSL source, bare where it can be."""
    if not dtype.is_float:
        return str(bool(value)) if dtype.is_bool else str(value)
    digits = float_text(float(value), dtype)
    return f"tl.{dtype}({digits})" if digits[0] == '"' else digits


def float_text(value: float, dtype: DType) -> str:
    """The shortest digits that round back to `value` in `dtype`; `"nan"`, `"inf"`, `"-inf"` in quotes."""
    return digits_of(value, dtype) if isfinite(value) else f'"{value}"'


def _listed(start: str, args: Sequence[Expr | str], *, typed: bool = False) -> Sequence[Piece]:
    pieces: list[Piece] = [start]
    for number, arg in enumerate(args):
        if number:
            pieces.append(", ")
        pieces.append(arg if isinstance(arg, str) else (arg, TERNARY, typed))
    return pieces


def _load(load: Load, names: Names) -> tuple[int, Sequence[Piece]]:
    return ATOM, [*_listed(f"{names.of(load.buffer)}[", load.indices or ("()",)), "]"]


def _cast(cast: Cast, names: Names) -> tuple[int, Sequence[Piece]]:
    # Of a bare literal this would be a constant.
    return ATOM, (f"tl.{cast.dtype}(", (cast.value, TERNARY, True), ")")


def _call(call: Call, names: Names) -> tuple[int, Sequence[Piece]]:
    if call.op is Op.IF_THEN_ELSE:
        condition, if_true, if_false = call.args
        return TERNARY, (
            (if_true, TERNARY + 1, False),
            " if ",
            (condition, TERNARY + 1, False),
            " else ",
            (if_false, TERNARY, False),
        )
    args: Sequence[Expr | str] = call.args
    if call.op is Op.PRINT:
        return ATOM, _print(call)
    if call.op is Op.CALL_EXTERN:
        args = (f'"{call.dtype}"', *args)
    # Functions of several numbers bring them to one type, so that one constant must say it if all are constants.
    typed = call.op.is_math and all(type(arg) in _CONSTANTS for arg in call.args) and call.dtype != f64
    end = ", fast=True)" if call.op.is_fast else ")"
    return ATOM, [*_listed(f"tl.{call.op.label}(", args, typed=typed), end]


def _print(call: Call) -> Sequence[Piece]:
    """`print("a {}".format(x))`, with `end=""` where it is not the end of a line."""
    text, *values = call.args
    assert isinstance(text, StringImm)
    is_line = text.value.endswith("\n")
    shown = text.value[:-1] if is_line else text.value
    end = ")" if is_line else ', end="")'
    if not values:
        return (f"print({quoted(shown.format())}{end}",)
    return [*_listed(f"print({quoted(shown)}.format(", values, typed=True), f"){end}"]


def _select(select: Select, names: Names) -> tuple[int, Sequence[Piece]]:
    return ATOM, [*_listed("tl.select(", (select.condition, select.if_true, select.if_false)), ")"]


def _ramp(ramp: Ramp, names: Names) -> tuple[int, Sequence[Piece]]:
    return ATOM, [*_listed("tl.ramp(", (ramp.base, ramp.stride, str(ramp.lanes))), ")"]


def _broadcast(broadcast: Broadcast, names: Names) -> tuple[int, Sequence[Piece]]:
    return ATOM, [*_listed("tl.broadcast(", (broadcast.value, str(broadcast.lanes))), ")"]


def _let(let: LetExpr, names: Names) -> tuple[int, Sequence[Piece]]:
    return ATOM, [*_listed("tl.let(", (names.define(let.var), let.value, let.body)), ")"]


def _buffer(ref: BufferRef, names: Names) -> tuple[int, Sequence[Piece]]:
    return ATOM, (names.of(ref.buffer),)


def _string(string: StringImm, names: Names) -> tuple[int, Sequence[Piece]]:
    return ATOM, (quoted(string.value),)


def quoted(text: str) -> str:
    """`text` as a Python literal in double quotes, on one line."""
    return '"' + "".join(_ESCAPED.get(c, c) if c.isprintable() else ascii(c)[1:-1] for c in text) + '"'


_ESCAPED = {'"': '\\"', "\\": "\\\\"}


def _var(var: Var, names: Names) -> tuple[int, Sequence[Piece]]:
    return ATOM, (names.of(var),)


_RULES: dict[type[Expr], Callable[[Any, Names], tuple[int, Sequence[Piece]]]] = {
    Var: _var,
    StringImm: _string,
    BufferRef: _buffer,
    Load: _load,
    Cast: _cast,
    Select: _select,
    Ramp: _ramp,
    Broadcast: _broadcast,
    Call: _call,
    LetExpr: _let,
    **dict.fromkeys(_SIGNS, _unary),
    **dict.fromkeys(_OPERATORS, _binary),
    **dict.fromkeys(_FUNCTIONS, _function),
}
