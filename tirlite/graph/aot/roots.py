"""Tells who computes each tensor of a value in a program: through Lets, tuples, projections, and views."""

from __future__ import annotations

from typing import NamedTuple

from tirlite.graph.expr import Call, Expr, Tuple, TupleGetItem
from tirlite.graph.program import Program
from tirlite.graph.types import tensors


class Root(NamedTuple):
    """The tensor of this number, from left to right, that an expression makes: a parameter, constant, call or If."""

    expr: Expr
    number: int


def root(made: Program, expr: Expr, index: int) -> Root:
    """Who computes tensor `index` of `expr`."""
    while True:
        expr = made.resolved(expr)
        if isinstance(expr, Tuple):
            for each in expr.fields:
                count = len(tensors(each.type))
                if index < count:
                    expr = each
                    break
                index -= count
        elif isinstance(expr, TupleGetItem):
            index += expr.tensor_slice.start
            expr = expr.value
        elif isinstance(expr, Call) and expr.is_view:
            expr = expr.args[0]
        else:
            return Root(expr, index)
