"""Tells loops with much to do in each iteration, before anything is loaded that could make use of it."""

from __future__ import annotations

from tirlite.ir import Call, For, Let, Store, walk


def has_much_to_do(loop: For) -> bool:
    """Whether an iteration has loops inside, or computes elementary functions."""
    if any(isinstance(stmt, For) for stmt in loop.body.stmts):
        return True
    values = (stmt.value for stmt in loop.body.stmts if isinstance(stmt, Store | Let))
    return any(isinstance(node, Call) and node.op.takes_fast for value in values for node in walk(value))
