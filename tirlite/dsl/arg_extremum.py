"""Translates `top, at = tl.argmax((top, at), (x[i], i))`: the pair that is taken of two."""

from __future__ import annotations

import ast

from tirlite.diag import Message
from tirlite.dsl.convert import together
from tirlite.dsl.expression import Expressions
from tirlite.dsl.parameters import described
from tirlite.ir.arg_extremum import comes_first
from tirlite.ir.expr import Expr, Max, Min, Select

WORDS = ("argmax", "argmin")


class BadPair(Message):
    """`tl.argmax` or `tl.argmin` is given something other than two pairs of a value and its place.

    Example: `top, at = tl.argmax(x[i], i)`.
    Fix: Give the pair so far and the new one: `top, at = tl.argmax((top, at), (x[i], i))`.
    """

    title = "tl.{name} takes two pairs of a value and its place, and is given {given}"
    help = "write `top, at = tl.{name}((top, at), (x[i], i))`"


def pair_of(node: ast.Call, name: str, expressions: Expressions) -> tuple[Expr, Expr]:
    """The value and the place of the pair that is taken."""
    span = expressions.span(node)
    pairs = [arg.elts for arg in node.args if isinstance(arg, ast.Tuple) and len(arg.elts) == 2]
    if len(pairs) != 2 or len(node.args) != 2 or node.keywords:
        raise BadPair(name, f"`{expressions.places.text(node)}`", span=span).error()
    (best, at), (value, place) = ([expressions.value(part) for part in pair] for pair in pairs)
    (_, _), (value_span, place_span) = ([expressions.span(part) for part in pair] for pair in pairs)
    best, value = together((best, value), (value_span, value_span))
    at, place = together((at, place), (place_span, place_span))
    if not at.dtype.is_integer or value.dtype.is_bool:
        raise BadPair(name, described(at if not at.dtype.is_integer else value), span=span).error()
    takes = comes_first(Max if name == "argmax" else Min, value, place, best, at)
    return Select(takes, value, best), Select(takes, place, at)
