"""Finds scalars of a loop's body that are uniform: they have the same value in all iterations.

`bit` is, in `for i in range(n): bit = 1 << 30; while bit != 0: ...; bit = bit >> 2`. Lanes share such a scalar, and run
a `while` with a condition on it without masks.
"""

from __future__ import annotations

from collections.abc import Container

from tirlite.ir.expr import Buffer, Expr, Load, Var
from tirlite.ir.node import Node
from tirlite.ir.stmt import Allocate, For, IfThenElse, Let, SeqStmt, Stmt, Store, While
from tirlite.ir.walk import allocated_in, statements_of, stored_in, walk


def uniform_scalars(body: SeqStmt, lane: Var) -> frozenset[Buffer]:
    """The uniform scalars that a body allocates; none without a `while`, which alone profits from them."""
    if next(statements_of(body, While), None) is None:
        return frozenset()
    allocated = allocated_in(body)
    written = stored_in(body)
    uniform = {each for each in allocated if not each.shape and each.dtype.lanes == 1 and not each.volatile}
    while differing := _differing(body, {lane}, uniform, written):
        uniform -= differing
    return frozenset(uniform)


def _differing(
    body: SeqStmt, varying: set[Node], uniform: Container[Buffer], written: Container[Buffer]
) -> set[Buffer]:
    """The scalars that some store makes differ between iterations, if the others are uniform."""

    def is_uniform(expr: Expr) -> bool:
        nodes = [*walk(expr)]
        loaded = {node.buffer for node in nodes if isinstance(node, Load)}
        is_steady = all(each in uniform or not (each in written or each.volatile) for each in loaded)
        return is_steady and varying.isdisjoint(nodes)

    found: set[Buffer] = set()
    todo: list[tuple[Stmt, bool]] = [(body, True)]
    while todo:
        stmt, is_certain = todo.pop()
        if isinstance(stmt, SeqStmt):
            todo += ((each, is_certain) for each in reversed(stmt.stmts))
        elif isinstance(stmt, Let):
            if not is_uniform(stmt.value):
                varying.add(stmt.var)
        elif isinstance(stmt, Store):
            if stmt.buffer in uniform and not (is_certain and is_uniform(stmt.value)):
                found.add(stmt.buffer)
        elif isinstance(stmt, IfThenElse | While):
            together = is_certain and is_uniform(stmt.condition)
            todo += ((each, together) for each in stmt.bodies[::-1])
        elif isinstance(stmt, For):
            together = is_certain and is_uniform(stmt.start) and is_uniform(stmt.stop)
            todo.append((stmt.body, together))
        elif not isinstance(stmt, Allocate):
            return {each.buffer for each in statements_of(body, Allocate) if each.buffer in uniform}
    return found
