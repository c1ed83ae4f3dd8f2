"""Walks over the nodes below a node, in program order, at any depth."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import TypeVar, cast

from tirlite.ir.expr import Add, And, Buffer, BufferRef, Call, Expr, FloatImm, IntImm, LetExpr, Load, Or, Sub, Var
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.stmt import (
    Allocate,
    AttrStmt,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    Let,
    SeqStmt,
    Stmt,
    Store,
    View,
    While,
)

# What most programs are made of, and what nothing stands below: told apart by one look.
ATOMS: frozenset[type[Node]] = frozenset((IntImm, FloatImm, Var, Allocate))
_DEFINING: tuple[type[Node], ...] = (Let, For, Allocate, View, LetExpr)
_LEAVES: frozenset[type[Stmt]] = frozenset((Store, Allocate, View, Let, Evaluate))
COMPOSITES: frozenset[type[Stmt]] = frozenset((SeqStmt, For, While, IfThenElse, AttrStmt))

# As many nodes a tree may have, whatever they are: the walks of a compilation take half a second for them.
ALWAYS_FINE = 50_000

N = TypeVar("N", bound=Node)
S = TypeVar("S", bound=Stmt)


def walk(*roots: Node) -> Iterator[Node]:
    """Each root and all nodes below it, each before its children. The shapes of buffers are not entered."""
    stack = [*roots[::-1]]
    while stack:
        node = stack.pop()
        yield node
        if type(node) not in ATOMS:
            stack.extend(node.children()[::-1])


def nodes_of(roots: Sequence[Node], *kinds: type[N]) -> Iterator[N]:
    """Those nodes that `walk` meets that are of these very classes, no generator of the others between."""
    stack = [*roots[::-1]]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind in kinds:
            yield cast(N, node)
        if kind not in ATOMS:
            stack.extend(node.children()[::-1])


def mentions(root: Node | Sequence[Node], names: Node | Container[object]) -> bool:
    """Whether a node, or one of several, is made of a name, or of any of several: variables, as a rule."""
    sought = {names} if isinstance(names, Node) else names
    stack = [root] if isinstance(root, Node) else [*root]
    while stack:
        node = stack.pop()
        if node in sought:
            return True
        if type(node) not in ATOMS:
            stack += node.children()
    return False


def loads_in(*roots: Node) -> Iterator[Load]:
    """The loads among nodes and all below them, as `walk` meets them."""
    return nodes_of(roots, Load)


def accesses_in(*roots: Node) -> Iterator[Load | Store]:
    """The loads and the stores, in the same way."""
    return nodes_of(roots, Load, Store)


def allocated_in(root: Stmt) -> set[Buffer]:
    return {stmt.buffer for stmt in statements_of(root, Allocate)}


def stored_in(root: Stmt) -> set[Buffer]:
    return {stmt.buffer for stmt in statements_of(root, Store)}


def variables_in(*roots: Node) -> Iterator[Var]:
    """The variables that are mentioned, in the same way."""
    return nodes_of(roots, Var)


def may_skip_parts(node: Node) -> bool:
    """Whether some parts of an expression are evaluated only where the first one asks for them."""
    return isinstance(node, And | Or) or (isinstance(node, Call) and node.op is Op.IF_THEN_ELSE)


def is_steady(*exprs: Expr) -> bool:
    """Whether expressions have one value wherever their variables have theirs: no memory decides."""
    made = [expr for expr in exprs if type(expr) not in ATOMS]
    return not made or next(loads_in(*made), None) is None


def reads(buffer: Buffer, *roots: Node) -> bool:
    """Whether an element of `buffer` is loaded in what stands below one of these."""
    return any(load.buffer is buffer for load in loads_in(*roots))


def is_constant(node: Node, value: int) -> bool:
    """Whether an expression is this integer, as it stands."""
    return isinstance(node, IntImm) and node.value == value


def without_number(expr: Expr) -> tuple[Expr, int]:
    """What numbers are added to in a sum, and what they are together: `i` and 3 for `i + 5 - 2`."""
    total = 0
    while isinstance(expr, Add | Sub) and isinstance(expr.b, IntImm):
        total += expr.b.value if isinstance(expr, Add) else -expr.b.value
        expr = expr.a
    return expr, total


def defined_in(root: Node) -> set[object]:
    """The variables and buffers that are defined by a node, and by those below it."""
    return {getattr(node, name) for node in nodes_of((root,), *_DEFINING) for name in node.DEFINES}


def buffers_of(node: Node) -> Iterator[Buffer]:
    """The buffers that a node itself mentions, but for those that it declares."""
    return (buffer for name in node.USES if isinstance(buffer := getattr(node, name), Buffer))


def aliased_by(node: Node) -> Buffer | None:
    """The buffer that has another name by a node: of it there is a view, or a call gets it or an element's address."""
    if isinstance(node, View):
        return node.source
    if isinstance(node, Call) and node.op is Op.ADDRESS_OF:
        node = node.args[0]
        return node.buffer if isinstance(node, Load) else None
    return node.buffer if isinstance(node, BufferRef) else None


def aliased_in(root: Node) -> set[Buffer]:
    """The buffers that may be touched by other names than their own, in a node and below it, see `aliased_by`."""
    named = nodes_of((root,), View, Call, BufferRef)
    return {buffer for node in named if (buffer := aliased_by(node)) is not None}


def conjuncts(condition: Expr) -> Iterator[Expr]:
    """What must all hold for a condition to hold, in the order in which it is asked for."""
    stack = [condition]
    while stack:
        each = stack.pop()
        if isinstance(each, And):
            stack += (each.b, each.a)
        else:
            yield each


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


def chain_from(loop: For, *kinds: ForKind) -> list[For]:
    """A loop, and those inside that are all there is in the one before, of these kinds: of all by default."""
    found = [loop]
    while len(found[-1].body.stmts) == 1 and isinstance(inner := found[-1].body.stmts[0], For):
        if kinds and inner.kind not in kinds:
            break
        found.append(inner)
    return found


def own_exprs(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions of a statement, but for those inside of its bodies: bounds, a condition, indices, a value."""
    return tuple([child for child in stmt.children() if isinstance(child, Expr)])


def composites(body: SeqStmt) -> tuple[Stmt, ...]:
    """The statements of a block that hold others, in order. Where there are none, that takes one look."""
    if COMPOSITES.isdisjoint(body.kinds):
        return ()
    return tuple([each for each in body.stmts if type(each) in COMPOSITES])


def statements_of(root: Stmt, *kinds: type[S]) -> Iterator[S]:
    """Those of `statements(root)` that are of these very classes, in the same order.

    Where few are, this takes far less time: the others are passed over as they stand in their block.
    """
    met = COMPOSITES.union(kinds)
    stack = [root]
    while stack:
        stmt = stack.pop()
        kind = type(stmt)
        if kind in kinds:
            yield cast(S, stmt)
            if kind not in COMPOSITES:
                continue
        if isinstance(stmt, SeqStmt):
            if not met.isdisjoint(stmt.kinds):
                stack.extend([each for each in stmt.stmts[::-1] if type(each) in met])
        elif isinstance(stmt, IfThenElse):
            stack += (stmt.else_body, stmt.then_body)
        elif isinstance(stmt, (For, While, AttrStmt)):
            stack.append(stmt.body)
