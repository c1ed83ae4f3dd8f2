"""Translates `print(...)`: to one text, with a place for each value, see `ir.printing`."""

from __future__ import annotations

import ast

from tirlite.diag import Message
from tirlite.dsl.convert import is_literal, number
from tirlite.dsl.expression import Expressions
from tirlite.dsl.parameters import described
from tirlite.dsl.refused import NotInKernels, refusal
from tirlite.dsl.vocabulary import UnknownKeyword, WrongArgument
from tirlite.ir.dtype import i32
from tirlite.ir.expr import Call, Expr, StringImm
from tirlite.ir.op import Op
from tirlite.ir.printing import fits


class PrintFormat(Message):
    """A value is printed in a format that its type does not have, or that is not a constant.

    Example: `print(f"{x[i]:d}")` of an f32, or `print(f"{x[i]!r}")`.
    """

    title = "this format does not fit the values that are printed: {given}"
    help = "write `{{value}}` or `{{value:.3f}}`, as Python formats numbers"


def print_call(node: ast.Call, expressions: Expressions) -> Call:
    """The call that prints what `print(a, b, sep=" ", end="\\n")` does in Python."""
    constants = {"sep": " ", "end": "\n"}
    for keyword in node.keywords:
        if keyword.arg not in constants:
            known = "it knows `sep` and `end`: kernels print to sys.stdout"
            raise UnknownKeyword("print", keyword.arg or "**", known, span=expressions.span(keyword.value)).error()
        constants[keyword.arg] = _constant(keyword.value, expressions)
    parts, values = [], []
    for arg in node.args:
        text, shown = _shown(arg, expressions)
        parts.append(text)
        values += shown
    text = _escaped(constants["sep"]).join(parts) + _escaped(constants["end"])
    if not fits(text, [each.dtype for each in values]):
        given = ", ".join(str(each.dtype) for each in values) or "there are none"
        raise PrintFormat(given, span=expressions.span(node)).error()
    return Call(i32, Op.PRINT, (StringImm(text), *values))


def _shown(node: ast.expr, expressions: Expressions) -> tuple[str, list[Expr]]:
    """The text of an argument, and the values that go into it."""
    if isinstance(node, ast.Starred):
        raise refusal(node, expressions.span(node))
    if isinstance(node, ast.JoinedStr):
        return _f_string(node, expressions)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return _format(node, node.func.value, expressions)
    value = expressions.value(node)
    if isinstance(value, str) or is_literal(value):
        return _escaped(str(value)), []
    if not isinstance(value, Expr):
        wanted = "numbers and texts"
        raise WrongArgument("print", wanted, described(value), span=expressions.span(node)).error()
    return "{}", [number(value, expressions.span(node))]


def _f_string(node: ast.JoinedStr, expressions: Expressions) -> tuple[str, list[Expr]]:
    texts: list[str] = []
    values: list[Expr] = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            spec = _spec(part, expressions)
            text, shown = _shown(part.value, expressions)
            if spec and not shown:
                value = expressions.value(part.value)
                text, shown = ("{}", [number(value, expressions.span(part.value))]) if is_literal(value) else (text, [])
            texts.append(f"{{:{spec}}}" if spec and shown else text)
            values += shown
        elif isinstance(part, ast.Constant):
            texts.append(_escaped(str(part.value)))
    return "".join(texts), values


def _spec(part: ast.FormattedValue, expressions: Expressions) -> str:
    """The format behind the colon, which is a constant."""
    pieces = part.format_spec.values if isinstance(part.format_spec, ast.JoinedStr) else []
    if part.conversion != -1 or not all(isinstance(each, ast.Constant) for each in pieces):
        instead = "write `{value}` or `{value:.3f}`, as Python formats numbers"
        raise NotInKernels("this format", instead, span=expressions.span(part.value)).error()
    return "".join(str(each.value) for each in pieces if isinstance(each, ast.Constant))


def _format(node: ast.Call, text: ast.expr, expressions: Expressions) -> tuple[str, list[Expr]]:
    """`"{} {:.3f}".format(a, b)`, as printed IR has it."""
    values = [number(expressions.value(each), expressions.span(each)) for each in node.args]
    written = _constant(text, expressions)
    if node.keywords or not fits(written, [each.dtype for each in values]):
        given = ", ".join(str(each.dtype) for each in values) or "there are none"
        raise PrintFormat(given, span=expressions.span(node)).error()
    return written, values


def _constant(node: ast.expr, expressions: Expressions) -> str:
    value = expressions.value(node)
    if not isinstance(value, str):
        raise WrongArgument("print", "a text", described(value), span=expressions.span(node)).error()
    return value


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
