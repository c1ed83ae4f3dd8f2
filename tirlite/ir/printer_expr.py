"""Prints an expression as DSL text with the current names: explicit types, and only the parentheses needed.

Constants of a Python literal's default type (i64, f64, bool) print bare, all others with their type: `x[i] *
tl.f32(0.5)`. In an operation on constants alone the first is always printed with its type, since the DSL computes bare
literals as Python does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, TypeAlias

from tirlite.ir import expr as e
from tirlite.ir.dtype import DType, bool_, f64, float_text as digits_of, i64
from tirlite.ir.op import Op
from tirlite.ir.printer_names import PrintedNames
from tirlite.show.styled import BEGIN, END

# Python's precedences; an operand of lower precedence than its place demands is put in parentheses.
TERNARY, OR, AND, NOT, COMPARE, BIT_OR, BIT_XOR, BIT_AND, SHIFT, SUM, PRODUCT, SIGN, ATOM = range(13)

# Expressions nested deeper are spilled into lets.
DEEPEST = 50

# Text, or an expression with the precedence that its place demands, and whether a constant must print its type.
Piece: TypeAlias = "str | tuple[e.Expr, int, bool]"
# The precedence of a text, and its pieces.
_Text: TypeAlias = "tuple[int, Sequence[Piece]]"

_OPERATORS: dict[type[e.Expr], tuple[str, int]] = {
    e.Or: (" or ", OR),
    e.And: (" and ", AND),
    e.EQ: (" == ", COMPARE),
    e.NE: (" != ", COMPARE),
    e.LT: (" < ", COMPARE),
    e.LE: (" <= ", COMPARE),
    e.GT: (" > ", COMPARE),
    e.GE: (" >= ", COMPARE),
    e.BitOr: (" | ", BIT_OR),
    e.BitXor: (" ^ ", BIT_XOR),
    e.BitAnd: (" & ", BIT_AND),
    e.ShiftLeft: (" << ", SHIFT),
    e.ShiftRight: (" >> ", SHIFT),
    e.Add: (" + ", SUM),
    e.Sub: (" - ", SUM),
    e.Mul: (" * ", PRODUCT),
    e.Div: (" / ", PRODUCT),
    e.FloorDiv: (" // ", PRODUCT),
    e.FloorMod: (" % ", PRODUCT),
}
_CONSTANTS = (e.IntImm, e.FloatImm)
_SIGNS: dict[type[e.Expr], tuple[str, int]] = {e.Neg: ("-", SIGN), e.BitNot: ("~", SIGN), e.Not: ("not ", NOT)}
_FUNCTIONS: dict[type[e.Expr], str] = {
    e.Min: "min(",
    e.Max: "max(",
    e.TruncDiv: "tl.truncdiv(",
    e.TruncMod: "tl.truncmod(",
}


def expr_text(expr: e.Expr, names: PrintedNames) -> tuple[str, int]:
    """The text of `expr`, and its depth of nested operations."""
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


def _binary(expr: e.Binary | e.Compare, names: PrintedNames) -> _Text:
    # A literal takes the type of the other side; of two literals the first must print it.
    typed = type(expr.b) in _CONSTANTS and type(expr.a) in _CONSTANTS
    sign, binds = _OPERATORS[type(expr)]
    left = binds + 1 if binds == COMPARE else binds
    return binds, ((expr.a, left, typed), sign, (expr.b, binds + 1, False))


def _function(expr: e.Binary, names: PrintedNames) -> _Text:
    typed = type(expr.b) in _CONSTANTS and type(expr.a) in _CONSTANTS
    return ATOM, (_FUNCTIONS[type(expr)], (expr.a, TERNARY, typed), ", ", (expr.b, TERNARY, False), ")")


def _unary(expr: e.Unary, names: PrintedNames) -> _Text:
    sign, binds = _SIGNS[type(expr)]
    return binds, (sign, (expr.a, binds, True))


def _constant(imm: Any, *, typed: bool) -> tuple[int, str]:
    """The precedence and text of a constant, with its type if `typed`, or if a literal would have another type."""
    dtype: DType = imm.dtype
    if isinstance(imm, e.FloatImm):
        digits = float_text(imm.value, dtype)
        bare = dtype == f64 and digits[0] != '"'
    else:
        digits = str(bool(imm.value)) if dtype.is_bool and imm.value in (0, 1) else str(imm.value)
        bare = dtype in (i64, bool_)
    if typed or not bare:
        return ATOM, f"tl.{dtype}({digits})"
    return (SIGN if digits[0] == "-" else ATOM), digits


def number_text(value: bool | int | float, dtype: DType) -> str:
    """A number of type `dtype` as DSL source, bare if possible."""
    if not dtype.is_float:
        return str(bool(value)) if dtype.is_bool else str(value)
    digits = float_text(float(value), dtype)
    return f"tl.{dtype}({digits})" if digits[0] == '"' else digits


def float_text(value: float, dtype: DType) -> str:
    """The shortest digits that round back to `value` in `dtype`; `"nan"`, `"inf"`, `"-inf"` in quotes."""
    return digits_of(value, dtype) if isfinite(value) else f'"{value}"'


def _listed(start: str, args: Sequence[e.Expr | str], end: str = ")", *, typed: bool = False) -> _Text:
    """Arguments separated by commas."""
    pieces: list[Piece] = [start]
    for number, arg in enumerate(args):
        if number:
            pieces.append(", ")
        pieces.append(arg if isinstance(arg, str) else (arg, TERNARY, typed))
    return ATOM, [*pieces, end]


def _call(call: e.Call, names: PrintedNames) -> _Text:
    if call.op is Op.IF_THEN_ELSE:
        condition, if_true, if_false = call.args
        return TERNARY, (
            (if_true, TERNARY + 1, False),
            " if ",
            (condition, TERNARY + 1, False),
            " else ",
            (if_false, TERNARY, False),
        )
    args: Sequence[e.Expr | str] = call.args
    if call.op is Op.PRINT:
        return _print(call)
    if call.op is Op.CALL_EXTERN:
        args = (f'"{call.dtype}"', *args)
    # Functions promote their arguments to one type, so if all are constants they must print it.
    typed = call.op.is_math and all(type(arg) in _CONSTANTS for arg in call.args) and call.dtype != f64
    end = ", fast=True)" if call.op.is_fast else ")"
    return _listed(f"tl.{call.op.label}(", args, end, typed=typed)


def _print(call: e.Call) -> _Text:
    """`print("a {}".format(x))`, with `end=""` if the text does not end a line."""
    text, *values = call.args
    assert isinstance(text, e.StringImm)
    is_line = text.value.endswith("\n")
    shown = text.value[:-1] if is_line else text.value
    end = ")" if is_line else ', end="")'
    if not values:
        return ATOM, (f"print({quoted(shown.format())}{end}",)
    return _listed(f"print({quoted(shown)}.format(", values, f"){end}", typed=True)


def quoted(text: str) -> str:
    """`text` as a Python literal in double quotes, on one line."""
    return '"' + "".join(_ESCAPED.get(c, c) if c.isprintable() else ascii(c)[1:-1] for c in text) + '"'


_ESCAPED = {'"': '\\"', "\\": "\\\\"}


_RULES: dict[type[e.Expr], Callable[[Any, PrintedNames], _Text]] = {
    e.Var: lambda var, names: (ATOM, (names.of(var),)),
    e.StringImm: lambda text, _: (ATOM, (quoted(text.value),)),
    e.BufferRef: lambda ref, names: (ATOM, (names.of(ref.buffer),)),
    e.Load: lambda load, names: _listed(f"{names.of(load.buffer)}[", load.indices or ("()",), "]"),
    # A bare literal inside would make it a constant, not a cast.
    e.Cast: lambda cast, _: _listed(f"tl.{cast.dtype}(", (cast.value,), typed=True),
    e.Select: lambda select, _: _listed("tl.select(", select.children()),
    e.Ramp: lambda ramp, _: _listed("tl.ramp(", (ramp.base, ramp.stride, str(ramp.lanes))),
    e.Broadcast: lambda spread, _: _listed("tl.broadcast(", (spread.value, str(spread.lanes))),
    e.Call: _call,
    e.LetExpr: lambda let, names: _listed("tl.let(", (names.define(let.var), let.value, let.body)),
    **dict.fromkeys(_SIGNS, _unary),
    **dict.fromkeys(_OPERATORS, _binary),
    **dict.fromkeys(_FUNCTIONS, _function),
}
