"""A program in, who computes each tensor of a value out: through Lets, tuples, projections, and views."""

from __future__ import annotations

from typing import NamedTuple

from tirlite.graph.expr import Call, Expr, Tuple, TupleGetItem
from tirlite.graph.op import Op
from tirlite.graph.program import Program
from tirlite.graph.types import TupleType, tensors


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
            index += field_start(expr)
            expr = expr.value
        elif is_view(expr):
            expr = expr.operands[0]
        else:
            return Root(expr, index)


def field_start(expr: TupleGetItem) -> int:
    """How many tensors stand before the field in its tuple."""
    assert isinstance(expr.value.type, TupleType)
    return sum(len(tensors(each)) for each in expr.value.type.fields[: expr.index])


def is_view(expr: Expr) -> bool:
    """Whether it gives the bytes of its operand another shape."""
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.is_view
