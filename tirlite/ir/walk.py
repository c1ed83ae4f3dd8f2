"""A node in, the nodes below it out, in program order, at any depth."""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.ir.node import Node
from tirlite.ir.stmt import AttrStmt, For, IfThenElse, SeqStmt, Stmt, While


def walk(root: Node) -> Iterator[Node]:
    """`root` and all nodes below it, each before its children. The shapes of buffers are not entered."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children()))


def statements(root: Stmt) -> Iterator[Stmt]:
    """`root` and all statements below it but the SeqStmts, each before those inside it. Expressions are not entered."""
    stack = [root]
    while stack:
        stmt = stack.pop()
        if isinstance(stmt, SeqStmt):
            stack.extend(reversed(stmt.stmts))
            continue
        yield stmt
        if isinstance(stmt, IfThenElse):
            stack += (stmt.else_body, stmt.then_body)
        elif isinstance(stmt, For | While | AttrStmt):
            stack.append(stmt.body)
