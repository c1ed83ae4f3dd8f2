"""Tells loops with much to do in each iteration, before anything is loaded that could make use of it."""

from __future__ import annotations

from tirlite.ir import Assert, Call, For, IfThenElse, Let, Node, Store, While, walk


def has_much_to_do(loop: For) -> bool:
    """Whether an iteration has loops inside, or computes elementary functions."""
    todo = [*loop.body.stmts]
    while todo:
        stmt = todo.pop()
        if isinstance(stmt, For | While):
            return True
        if isinstance(stmt, IfThenElse):
            todo += (*stmt.then_body.stmts, *stmt.else_body.stmts)
        elif isinstance(stmt, Store | Let) and any(map(_is_elementary, walk(stmt.value))):
            return True
    return False


def asserts_alone(loop: For) -> bool:
    """Whether a loop has an assertion in its body, and nothing else."""
    return len(loop.body.stmts) == 1 and isinstance(loop.body.stmts[0], Assert)


def _is_elementary(node: Node) -> bool:
    return isinstance(node, Call) and node.op.takes_fast
