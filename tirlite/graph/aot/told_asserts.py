"""Lets the asserts in an operator's function tell which call of the graph it is, and which operand has the index."""

from __future__ import annotations

from tirlite.graph.expr import Call, Constant, Expr, Var
from tirlite.ir import Assert, PrimFunc, Stmt, statements
from tirlite.ir.rewrite import rewrite


def has_asserts(func: PrimFunc) -> bool:
    """Whether the function looks at what it reads."""
    return any(isinstance(stmt, Assert) for stmt in statements(func.body))


def told_for(func: PrimFunc, call: Call) -> PrimFunc:
    """The function with asserts that stand at the call, and name it and the operand that holds integers."""
    subject = f"`{call.name}`, a `{func.name}`" if call.name else f"`{func.name}`"
    indices = [name for arg in call.args if _is_integer(arg) and (name := _name(arg))]
    where = f"{subject}{f', input `{indices[-1]}`' if indices else ''}: "

    def told(stmt: Assert) -> Stmt:
        # With values, a message has places for them in braces.
        front = where.replace("{", "{{").replace("}", "}}") if stmt.values else where
        return Assert(stmt.condition, front + stmt.message, stmt.values, span=call.span or stmt.span)

    body = rewrite(func.body, {Assert: told})
    return func.replaced(body=body)


def _is_integer(arg: Expr) -> bool:
    return hasattr(arg.type, "dtype") and arg.dtype.is_integer


def _name(arg: Expr) -> str:
    return arg.name if isinstance(arg, Var | Call | Constant) else ""
