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

# The most common nodes without children, recognised by one lookup.
ATOMS: frozenset[type[Node]] = frozenset((IntImm, FloatImm, Var, Allocate))
_DEFINING: tuple[type[Node], ...] = (Let, For, Allocate, View, LetExpr)
_LEAVES: frozenset[type[Stmt]] = frozenset((Store, Allocate, View, Let, Evaluate))
COMPOSITES: frozenset[type[Stmt]] = frozenset((SeqStmt, For, While, IfThenElse, AttrStmt))

# Trees up to this many nodes are always accepted: a compilation walks them in half a second.
ALWAYS_FINE = 50_000

N = TypeVar("N", bound=Node)
S = TypeVar("S", bound=Stmt)


def walk(*roots: Node) -> Iterator[Node]:
    """Yields each root and all nodes below it, parents before children. Shapes of buffers are not entered."""
    stack = [*roots[::-1]]
    while stack:
        node = stack.pop()
        yield node
        if type(node) not in ATOMS:
            stack.extend(node.children()[::-1])


def nodes_of(roots: Sequence[Node], *kinds: type[N]) -> Iterator[N]:
    """The nodes of exactly these classes, in the order of `walk`; faster than filtering it."""
    stack = [*roots[::-1]]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind in kinds:
            yield cast(N, node)
        if kind not in ATOMS:
            stack.extend(node.children()[::-1])


def mentions(root: Node | Sequence[Node], names: Node | Container[object]) -> bool:
    """Whether a node, or one of several, contains a name or any of several names, usually variables."""
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
    """The loads in nodes, in the order of `walk`."""
    return nodes_of(roots, Load)


def accesses_in(*roots: Node) -> Iterator[Load | Store]:
    """The loads and stores in nodes, in the order of `walk`."""
    return nodes_of(roots, Load, Store)


def allocated_in(root: Stmt) -> set[Buffer]:
    return {stmt.buffer for stmt in statements_of(root, Allocate)}


def stored_in(root: Stmt) -> set[Buffer]:
    return {stmt.buffer for stmt in statements_of(root, Store)}


def variables_in(*roots: Node) -> Iterator[Var]:
    """The variables used in nodes, in the order of `walk`."""
    return nodes_of(roots, Var)


def may_skip_parts(node: Node) -> bool:
    """Whether some parts of an expression are evaluated only if its first part requires them."""
    return isinstance(node, And | Or) or (isinstance(node, Call) and node.op is Op.IF_THEN_ELSE)


def is_steady(*exprs: Expr) -> bool:
    """Whether the values of expressions depend on variables alone, not on memory."""
    made = [expr for expr in exprs if type(expr) not in ATOMS]
    return not made or next(loads_in(*made), None) is None


def reads(buffer: Buffer, *roots: Node) -> bool:
    """Whether an element of `buffer` is loaded in these nodes."""
    return any(load.buffer is buffer for load in loads_in(*roots))


def is_constant(node: Node, value: int) -> bool:
    """Whether an expression is literally this integer."""
    return isinstance(node, IntImm) and node.value == value


def is_plainly_positive(extent: Expr) -> bool:
    """Whether an extent is a positive number, or a dim that is at least 1."""
    if isinstance(extent, IntImm):
        return extent.value > 0
    return isinstance(extent, Var) and extent.dim is not None and extent.dim.min > 0


def without_number(expr: Expr) -> tuple[Expr, int]:
    """A sum without its added constants, and their total: `i` and 3 for `i + 5 - 2`."""
    total = 0
    while isinstance(expr, Add | Sub) and isinstance(expr.b, IntImm):
        total += expr.b.value if isinstance(expr, Add) else -expr.b.value
        expr = expr.a
    return expr, total


def defined_in(root: Node) -> set[object]:
    """The variables and buffers defined by a node and those below it."""
    return {getattr(node, name) for node in nodes_of((root,), *_DEFINING) for name in node.DEFINES}


def buffers_of(node: Node) -> Iterator[Buffer]:
    """The buffers that a node itself uses, without those that it declares."""
    return (buffer for name in node.USES if isinstance(buffer := getattr(node, name), Buffer))


def aliased_by(node: Node) -> Buffer | None:
    """The buffer that a node makes accessible by another name: by a view, or by passing it or an address to a call."""
    if isinstance(node, View):
        return node.source
    if isinstance(node, Call) and node.op is Op.ADDRESS_OF:
        node = node.args[0]
        return node.buffer if isinstance(node, Load) else None
    return node.buffer if isinstance(node, BufferRef) else None


def aliased_in(root: Node) -> set[Buffer]:
    """The buffers that may be accessed by other names, in a node and below it, see `aliased_by`."""
    named = nodes_of((root,), View, Call, BufferRef)
    return {buffer for node in named if (buffer := aliased_by(node)) is not None}


def conjuncts(condition: Expr) -> Iterator[Expr]:
    """The operands of nested `and`s, in order of evaluation."""
    stack = [condition]
    while stack:
        each = stack.pop()
        if isinstance(each, And):
            stack += (each.b, each.a)
        else:
            yield each


def distinct(root: Node) -> Iterator[Node]:
    """Like `walk`, but each node only once, so that it ends soon however often nodes are shared."""
    met: set[Node] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if node not in met:
            met.add(node)
            yield node
            stack.extend(node.children()[::-1])


def statements(root: Stmt) -> Iterator[Stmt]:
    """`root` and all statements below it but SeqStmts, parents first. Expressions are not entered."""
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
    """A loop and the loops perfectly nested in it, as long as they are of these kinds (default: all)."""
    found = [loop]
    while len(found[-1].body.stmts) == 1 and isinstance(inner := found[-1].body.stmts[0], For):
        if kinds and inner.kind not in kinds:
            break
        found.append(inner)
    return found


def own_exprs(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions of a statement outside of its bodies: bounds, a condition, indices, a value."""
    return tuple([child for child in stmt.children() if isinstance(child, Expr)])


def composites(body: SeqStmt) -> tuple[Stmt, ...]:
    """The statements of a block that contain others, in order; one lookup if there are none."""
    if COMPOSITES.isdisjoint(body.kinds):
        return ()
    return tuple([each for each in body.stmts if type(each) in COMPOSITES])


def statements_of(root: Stmt, *kinds: type[S]) -> Iterator[S]:
    """The statements of `statements(root)` of exactly these classes, in the same order.

    Much faster if there are few: other statements are skipped without visiting them.
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
