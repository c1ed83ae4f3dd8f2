"""Finds the scalars of a loop's body that have the same value in all iterations at each point, as `bit` has here:

`for i in range(n): bit = 1 << 30; while bit != 0: ...; bit = bit >> 2`. Lanes share such a scalar, and run a `while`
that it decides alike, without masks.
"""

from __future__ import annotations

from collections.abc import Container

from tirlite.ir import (
    Allocate,
    Buffer,
    Expr,
    For,
    IfThenElse,
    Let,
    Load,
    Node,
    SeqStmt,
    Stmt,
    Store,
    Var,
    While,
    statements,
    statements_of,
    walk,
)


def alike_scalars(body: SeqStmt, lane: Var) -> frozenset[Buffer]:
    """The scalars that a body allocates and that are alike in all iterations, where a `while` may ask for them."""
    if next(statements_of(body, While), None) is None:
        return frozenset()
    allocated = {stmt.buffer for stmt in statements_of(body, Allocate)}
    written = {stmt.buffer for stmt in statements(body) if isinstance(stmt, Store)}
    alike = {each for each in allocated if not each.shape and each.dtype.lanes == 1 and not each.volatile}
    while differing := _differing(body, {lane}, alike, written):
        alike -= differing
    return frozenset(alike)


def _differing(body: SeqStmt, varying: set[Node], alike: Container[Buffer], written: Container[Buffer]) -> set[Buffer]:
    """Those of the scalars that some store makes differ, if the others are alike."""

    def is_alike(expr: Expr) -> bool:
        nodes = [*walk(expr)]
        loaded = {node.buffer for node in nodes if isinstance(node, Load)}
        is_steady = all(each in alike or not (each in written or each.volatile) for each in loaded)
        return is_steady and varying.isdisjoint(nodes)

    found: set[Buffer] = set()
    todo: list[tuple[Stmt, bool]] = [(body, True)]
    while todo:
        stmt, is_certain = todo.pop()
        if isinstance(stmt, SeqStmt):
            todo += ((each, is_certain) for each in reversed(stmt.stmts))
        elif isinstance(stmt, Let):
            if not is_alike(stmt.value):
                varying.add(stmt.var)
        elif isinstance(stmt, Store):
            if stmt.buffer in alike and not (is_certain and is_alike(stmt.value)):
                found.add(stmt.buffer)
        elif isinstance(stmt, IfThenElse | While):
            together = is_certain and is_alike(stmt.condition)
            todo += ((each, together) for each in stmt.bodies[::-1])
        elif isinstance(stmt, For):
            together = is_certain and is_alike(stmt.start) and is_alike(stmt.stop)
            todo.append((stmt.body, together))
        elif not isinstance(stmt, Allocate):
            return {each.buffer for each in statements_of(body, Allocate) if each.buffer in alike}
    return found
