"""Branches: the two parts of a function between which a call's sizes choose. Each is compiled when a call needs it.

A matrix product has one loop nest for large operands and another for small ones, `if n >= 6 and m >= 32`, and most
programs need only one of them. Users who inspect the function see it whole.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from tirlite.ir import expr as e
from tirlite.ir.checked import ELSE_IN_THE_OTHER
from tirlite.ir.dtype import i64
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.stmt import Allocate, Assert, For, ForKind, IfThenElse, Let, SeqStmt, View
from tirlite.ir.walk import statements, statements_of, walk

# A part with fewer statements is not worth a module of its own.
_FEWEST = 32
# The most nodes of a condition; those made by schedule steps are a few comparisons.
_LONGEST = 64

_Computed: TypeAlias = Callable[[Any, Any], Any]
_NUMBERS: Mapping[type[Node], _Computed] = MappingProxyType(
    {
        e.Add: operator.add,
        e.Sub: operator.sub,
        e.Mul: operator.mul,
        e.FloorDiv: operator.floordiv,
        e.Max: max,
        e.Min: min,
    }
)
_TRUTHS: Mapping[type[Node], _Computed] = MappingProxyType(
    {e.GE: operator.ge, e.GT: operator.gt, e.LE: operator.le, e.LT: operator.lt, e.EQ: operator.eq, e.NE: operator.ne}
    | {e.And: operator.and_, e.Or: operator.or_}
)


def branches_of(func: PrimFunc) -> tuple[PrimFunc, PrimFunc] | None:
    """The function for calls that meet its condition, and the one for the others; None if it has no such parts.

    Each begins with an assert that the condition is met or not met.
    """
    if not func.body.stmts:
        return None
    *before, choice = func.body.stmts
    if not isinstance(choice, IfThenElse) or not _is_decided_by_dims(choice.condition, func):
        return None
    if not all(isinstance(stmt, Allocate | View | Let | Assert) for stmt in before):
        return None
    if not all(_is_long(body) for body in choice.bodies) and not _is_shared_apart(*choice.bodies):
        return None
    conditions = choice.condition, e.Not(choice.condition)
    met, unmet = (
        func.replaced(body=SeqStmt((Assert(condition, ELSE_IN_THE_OTHER), *before, *body.stmts)))
        for condition, body in zip(conditions, choice.bodies, strict=True)
    )
    return met, unmet


def is_met(func: PrimFunc, dims: Mapping[e.Var, int]) -> bool:
    """Whether a call with these dims meets the condition of a function with branches."""
    choice = func.body.stmts[-1]
    assert isinstance(choice, IfThenElse)
    return bool(_value(choice.condition, dims))


def _value(expr: e.Expr, dims: Mapping[e.Var, int]) -> int:
    if isinstance(expr, e.Var):
        return dims[expr]
    if isinstance(expr, e.IntImm):
        return expr.value
    assert isinstance(expr, e.Binary | e.Compare)
    compute = _NUMBERS.get(type(expr)) or _TRUTHS[type(expr)]
    return int(compute(_value(expr.a, dims), _value(expr.b, dims)))


def _is_decided_by_dims(condition: e.Expr, func: PrimFunc) -> bool:
    """Whether dims alone decide a condition, by i64 arithmetic that cannot fault."""
    nodes = [*walk(condition)]
    if len(nodes) > _LONGEST:
        return False
    for node in nodes:
        if isinstance(node, e.FloorDiv) and not (isinstance(node.b, e.IntImm) and node.b.value > 0):
            return False
        is_number = (type(node) in _NUMBERS and isinstance(node, e.Binary) and node.dtype == i64) or node in func.dims
        if not (is_number or isinstance(node, e.IntImm) or type(node) in _TRUTHS):
            return False
    return True


def _is_shared_apart(*bodies: SeqStmt) -> bool:
    """Whether the parts are a parallel loop and a serial loop: compiling both would take twice as long."""
    loops = [stmt.kind for body in bodies for stmt in body.stmts if isinstance(stmt, For)]
    return loops == [ForKind.PARALLEL, ForKind.SERIAL] and all(len(body.stmts) == 1 for body in bodies)


def _is_long(body: SeqStmt) -> bool:
    has_loops = next(statements_of(body, For), None) is not None
    return has_loops and sum(1 for _ in statements(body)) >= _FEWEST
