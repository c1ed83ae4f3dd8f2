"""Splits the message of an `assert` into its text and the values that go into it."""

from __future__ import annotations

import ast

from tirlite.dsl.convert import number
from tirlite.dsl.expression import Expressions
from tirlite.dsl.parameters import described
from tirlite.dsl.refused import NotInKernels
from tirlite.dsl.vocabulary import WrongArgument
from tirlite.ir.assertion import PLACE, places_in
from tirlite.ir.expr import Expr


def told(node: ast.expr, expressions: Expressions) -> tuple[str, tuple[Expr, ...]]:
    """A text alone, an f-string of plain values, or `"...{}...".format(...)`, which says the same."""
    if isinstance(node, ast.JoinedStr):
        return _f_string(node, expressions)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return _format(node, node.func.value, expressions)
    message = expressions.value(node)
    if not isinstance(message, str):
        raise WrongArgument("assert", "a text", described(message), span=expressions.span(node)).error()
    return message, ()


def _f_string(node: ast.JoinedStr, expressions: Expressions) -> tuple[str, tuple[Expr, ...]]:
    pieces: list[str] = []
    values: list[Expr] = []
    for part in node.values:
        if isinstance(part, ast.Constant):
            pieces.append(str(part.value).replace("{", "{{").replace("}", "}}"))
        elif isinstance(part, ast.FormattedValue):
            if part.conversion != -1 or part.format_spec is not None:
                instead = "write {value} alone: numbers are shown with as many digits as they need"
                raise NotInKernels("a format in a message", instead, span=expressions.span(node)).error()
            value = expressions.value(part.value, conditional=True)
            if isinstance(value, str):
                pieces.append(value.replace("{", "{{").replace("}", "}}"))
            else:
                pieces.append(PLACE)
                values.append(number(value, expressions.span(part.value)))
    text = "".join(pieces)
    return (text, tuple(values)) if values else (text.replace("{{", "{").replace("}}", "}"), ())


def _format(node: ast.Call, text: ast.expr, expressions: Expressions) -> tuple[str, tuple[Expr, ...]]:
    message = expressions.value(text)
    if not isinstance(message, str) or node.keywords or places_in(message) != len(node.args) or not node.args:
        instead = 'write as many places {} as values, as in "{} of {}".format(i, n)'
        raise NotInKernels("a message of this form", instead, span=expressions.span(node)).error()
    return message, tuple(
        number(expressions.value(each, conditional=True), expressions.span(each)) for each in node.args
    )
