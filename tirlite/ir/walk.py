"""A node in, the nodes below it out, in program order, at any depth."""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.ir.expr import IntImm, Var
from tirlite.ir.node import Node
from tirlite.ir.stmt import Allocate, AttrStmt, Evaluate, For, IfThenElse, Let, SeqStmt, Stmt, Store, View, While

# What most programs are made of, and what nothing stands below: told apart by one look.
_ATOMS: frozenset[type[Node]] = frozenset((IntImm, Var, Allocate))
_LEAVES: frozenset[type[Stmt]] = frozenset((Store, Allocate, View, Let, Evaluate))


def walk(root: Node) -> Iterator[Node]:
    """`root` and all nodes below it, each before its children. The shapes of buffers are not entered."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        if type(node) not in _ATOMS:
            stack.extend(node.children()[::-1])


def distinct(root: Node) -> Iterator[Node]:
    """As `walk`, but each node only once, where it is first met: that ends soon however often nodes are shared."""
    met: set[Node] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if node not in met:
            met.add(node)
            yield node
            stack.extend(node.children()[::-1])


def statements(root: Stmt) -> Iterator[Stmt]:
    """`root` and all statements below it but the SeqStmts, each before those inside it. Expressions are not entered."""
    stack = [root]
    while stack:
        stmt = stack.pop()
        if type(stmt) in _LEAVES:
            yield stmt
        elif isinstance(stmt, SeqStmt):
            stack.extend(stmt.stmts[::-1])
        else:
            yield stmt
            if isinstance(stmt, IfThenElse):
                stack += (stmt.else_body, stmt.then_body)
            elif isinstance(stmt, (For, While, AttrStmt)):
                stack.append(stmt.body)
