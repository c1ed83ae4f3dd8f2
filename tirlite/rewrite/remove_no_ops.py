"""Removes the statements of a function that have no effect outside of it."""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.analysis.facts import Facts
from tirlite.ir.expr import Buffer, BufferRef, Call, Load, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.rewrite import Rule, rewrite
from tirlite.ir.stmt import Allocate, AttrStmt, For, ForKind, IfThenElse, Let, Stmt, Store, View
from tirlite.ir.walk import own_exprs, statements, walk
from tirlite.rewrite.pipeline import FactsPass


class RemoveNoOps(FactsPass):
    """Removes stores, lets, views and allocations that have no effect outside, and loops and branches left empty.

    Calls of foreign code stay, and so does a `while`, which may never end. A fault in a removed store (an index out of
    bounds, a division by zero) no longer stops the kernel, so this is for functions without errors.
    """

    def rewritten(self, facts: Facts) -> PrimFunc:
        kept = _Needed(facts).found

        def leaf(node: Stmt) -> Stmt | tuple[Stmt, ...]:
            return node if node in kept else ()

        rules: dict[type[Node], Rule] = {
            **dict.fromkeys((Store, Allocate, View, Let), leaf),
            **dict.fromkeys((For, IfThenElse, AttrStmt), _composite),
        }
        return rewrite(facts.func, rules)


class _Needed:
    """The statements that stay: those with an effect, and all that these need."""

    def __init__(self, facts: Facts) -> None:
        func = facts.func
        self.found: set[Stmt] = set()
        self._definitions = facts.definitions
        self._params = {*func.arrays}
        self._around: dict[Stmt, list[Stmt]] = {}  # the composites around each occurrence of a statement
        self._stores: dict[Buffer, list[Stmt]] = {}  # by storage, the stores that it takes a load to keep
        self._declarations: dict[Var | Buffer, list[Stmt]] = {}  # by name, the declarations that it takes a use to keep
        staying = [stmt for stmt in statements(func.body) if not self._waits(stmt)]
        while staying:
            stmt = staying.pop()
            if stmt not in self.found:
                self.found.add(stmt)
                staying += self._around.get(stmt, ())
                staying += (each for node in _own_nodes(stmt) for each in self._needs(node))

    def _waits(self, stmt: Stmt) -> bool:
        """Whether a statement has no effect by itself, so that it goes unless needed; records it for that case."""
        if isinstance(stmt, Store):
            root = self._definitions.root(stmt.buffer)
            is_seen = root in self._params or stmt.buffer.volatile or root.volatile or _has_effect(stmt)
            self._stores.setdefault(root, []).append(stmt)
            return not is_seen
        if isinstance(stmt, Allocate | View):
            self._declarations.setdefault(stmt.buffer, []).append(stmt)
            return not stmt.buffer.volatile
        if isinstance(stmt, Let):
            self._declarations.setdefault(stmt.var, []).append(stmt)
            return not _has_effect(stmt.value)
        for inside in (each for body in stmt.bodies for each in body.stmts):
            self._around.setdefault(inside, []).append(stmt)
        return isinstance(stmt, For | IfThenElse | AttrStmt) and _may_go(stmt)

    def _needs(self, node: Node) -> Iterator[Stmt]:
        """The statements that a node of a kept statement needs, unless they were requested before."""
        if isinstance(node, Var):
            yield from self._declarations.pop(node, ())
        elif isinstance(node, View):
            yield from self._declarations.pop(node.source, ())
        elif isinstance(node, Load | Store | BufferRef | AttrStmt) and node.buffer is not None:
            yield from self._declarations.pop(node.buffer, ())
            if not isinstance(node, Store):
                yield from self._stores.pop(self._definitions.root(node.buffer), ())


def _own_nodes(stmt: Stmt) -> Iterator[Node]:
    """A statement with its expressions and declared extents, without its bodies."""
    yield stmt
    yield from walk(*own_exprs(stmt))
    if isinstance(stmt, Allocate | View):
        for extent in stmt.buffer.shape:
            yield from walk(extent)


def _has_effect(root: Node) -> bool:
    """Whether an expression does more than compute: it calls foreign code, or takes an address."""
    return any(
        (isinstance(node, Call) and node.op in (Op.CALL_EXTERN, Op.BARRIER, Op.PRINT, Op.ACCESS_PTR, Op.ADDRESS_OF))
        or (isinstance(node, Load) and node.buffer.volatile)
        for node in walk(root)
    )


def _may_go(stmt: For | IfThenElse | AttrStmt) -> bool:
    """Whether a composite with empty bodies can be removed."""
    is_thread = isinstance(stmt, For) and stmt.kind is ForKind.THREAD
    return not is_thread and not any(map(_has_effect, own_exprs(stmt)))


def _composite(node: For | IfThenElse | AttrStmt) -> Stmt | tuple[Stmt, ...]:
    return node if any(body.stmts for body in node.bodies) or not _may_go(node) else ()
