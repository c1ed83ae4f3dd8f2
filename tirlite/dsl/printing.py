"""Translates prints and the messages of asserts to one text with a placeholder for each value.

See `ir.printing` and `ir.assertion`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from tirlite.diag import Message
from tirlite.dsl.convert import is_literal, number
from tirlite.dsl.expression import Expressions
from tirlite.dsl.parameters import described
from tirlite.dsl.syntax import NotInKernels, refusal
from tirlite.dsl.vocabulary import UnknownKeyword, WrongArgument
from tirlite.ir.assertion import PLACE, places_in
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
    """The text of an argument, and its values."""
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
    def shown(part: ast.FormattedValue) -> tuple[str, list[Expr]]:
        spec = _spec(part, expressions)
        text, values = _shown(part.value, expressions)
        if spec and not values:
            value = expressions.value(part.value)
            text, values = ("{}", [number(value, expressions.span(part.value))]) if is_literal(value) else (text, [])
        return (f"{{:{spec}}}" if spec and values else text), values

    return _joined(node, shown)


def _joined(
    node: ast.JoinedStr, shown: Callable[[ast.FormattedValue], tuple[str, list[Expr]]]
) -> tuple[str, list[Expr]]:
    """The text of an f-string; `shown` returns the text and the values of each part in braces."""
    texts: list[str] = []
    values: list[Expr] = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            text, more = shown(part)
            texts.append(text)
            values += more
        elif isinstance(part, ast.Constant):
            texts.append(_escaped(str(part.value)))
    return "".join(texts), values


def _spec(part: ast.FormattedValue, expressions: Expressions) -> str:
    """The format after the colon, which must be constant."""
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


def _constant(node: ast.expr, expressions: Expressions, word: str = "print") -> str:
    value = expressions.value(node)
    if not isinstance(value, str):
        raise WrongArgument(word, "a text", described(value), span=expressions.span(node)).error()
    return value


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def assert_message(node: ast.expr, expressions: Expressions) -> tuple[str, tuple[Expr, ...]]:
    """The message of an assert and its values: a text, an f-string of plain values, or `"...{}...".format(...)`."""
    if isinstance(node, ast.JoinedStr):
        text, values = _joined(node, lambda part: _message_value(node, part, expressions))
        return (text, tuple(values)) if values else (text.replace("{{", "{").replace("}}", "}"), ())
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return _message_format(node, node.func.value, expressions)
    return _constant(node, expressions, "assert"), ()


def _message_value(node: ast.expr, part: ast.FormattedValue, expressions: Expressions) -> tuple[str, list[Expr]]:
    if part.conversion != -1 or part.format_spec is not None:
        instead = "write {value} alone: numbers are shown with as many digits as they need"
        raise NotInKernels("a format in a message", instead, span=expressions.span(node)).error()
    value = expressions.value(part.value, conditional=True)
    return (_escaped(value), []) if isinstance(value, str) else (PLACE, [number(value, expressions.span(part.value))])


def _message_format(node: ast.Call, text: ast.expr, expressions: Expressions) -> tuple[str, tuple[Expr, ...]]:
    message = expressions.value(text)
    if not isinstance(message, str) or node.keywords or places_in(message) != len(node.args) or not node.args:
        instead = 'write as many places {} as values, as in "{} of {}".format(i, n)'
        raise NotInKernels("a message of this form", instead, span=expressions.span(node)).error()
    return message, tuple(
        number(expressions.value(each, conditional=True), expressions.span(each)) for each in node.args
    )
