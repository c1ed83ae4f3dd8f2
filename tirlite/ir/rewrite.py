"""A tree and rules in, the rewritten tree out: bottom-up, at any depth, unchanged subtrees as the same objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from tirlite.diag import Span
from tirlite.ir.expr import Expr
from tirlite.ir.node import Node
from tirlite.ir.stmt import Allocate, Evaluate, Let, SeqStmt, Stmt, Store, View

# What most programs are made of, and what no statement stands below.
_LEAVES: frozenset[type[Node]] = frozenset((Store, Allocate, View, Let, Evaluate))

# A rule gets a node of its type, children already rewritten. It returns that node for "no change", another node, or,
# for a statement, several in a tuple (none to drop it).
Rule: TypeAlias = Callable[[Any], "Node | tuple[Stmt, ...]"]


def rewrite(
    root: Node, rules: Mapping[type[Node], Rule], *, enter: Mapping[type[Node], Callable[[Any], None]] | None = None
) -> Node:
    """`root` with each node for which there is a rule replaced by what the rule makes of it.

    `enter` is called with a node of its type, as it was, before its children are visited. A new statement without a
    span inherits that of the statement that it replaces. The span of a changed parent stays.
    """
    enter = enter or {}
    # Most passes have rules for statements alone, and most nodes are expressions.
    level: type[Node] = Node if any(issubclass(kind, Expr) for kind in (*rules, *enter)) else Stmt
    results: list[Node | tuple[Stmt, ...]] = []
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if level is Node:
            children = node.children()
        elif type(node) in _LEAVES:
            children = ()
        else:
            children = tuple([child for child in node.children() if isinstance(child, level)])
        if not ready:
            if enter and (hook := enter.get(type(node))) is not None:
                hook(node)
            if children:
                stack.append((node, True))
                stack.extend([(child, False) for child in children[::-1]])
                continue
        rebuilt = node
        if children:
            new = results[-len(children) :]
            del results[-len(children) :]
            if any(a is not b for a, b in zip(new, children, strict=True)):
                rebuilt = rebuild(node, new, level)
        rule = rules.get(type(rebuilt))
        results.append(rebuilt if rule is None else _with_span(rule(rebuilt), node))
    result = results.pop()
    return SeqStmt(result) if isinstance(result, tuple) else result


def rebuild(node: Node, children: Iterable[Node | tuple[Stmt, ...]], level: type[Node] = Node) -> Node:
    """`node` with other children of type `level`, given in the order of `node.children()`, all others as they are."""
    rest = iter(children)
    changes: dict[str, object] = {}
    for name in node.CHILDREN:
        old = getattr(node, name)
        if isinstance(old, tuple):
            changes[name] = tuple(_flat(next(rest) if isinstance(each, level) else each for each in old))
        elif isinstance(old, level):
            changes[name] = _as_block(next(rest)) if isinstance(old, SeqStmt) else next(rest)
    return node.replaced(**changes)


def _as_block(new: Node | tuple[Stmt, ...]) -> Node:
    if isinstance(new, tuple):
        return SeqStmt(new)
    return SeqStmt((new,)) if isinstance(new, Stmt) and not isinstance(new, SeqStmt) else new


def _flat(nodes: Any) -> Any:
    for node in nodes:
        if isinstance(node, tuple):
            yield from node
        else:
            yield node


def _with_span(result: Node | tuple[Stmt, ...], origin: Node) -> Node | tuple[Stmt, ...]:
    span = getattr(origin, "span", None)
    if span is None or result is origin:
        return result
    if isinstance(result, tuple):
        return tuple(_spanned(stmt, span) for stmt in result)
    return _spanned(result, span) if isinstance(result, Stmt) else result


def _spanned(stmt: Stmt, span: Span) -> Stmt:
    if isinstance(stmt, SeqStmt):
        # The block itself dissolves in the one around it.
        stmts = tuple(_spanned(each, span) for each in stmt.stmts)
        return SeqStmt(stmts, span=stmt.span or span)
    return stmt if stmt.span is not None else stmt.replaced(span=span)
