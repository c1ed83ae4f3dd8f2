"""A function in, the same without the statements that nobody sees the effect of out."""

from __future__ import annotations

from tirlite.analysis.definitions import Definitions
from tirlite.ir import (
    Allocate,
    AttrStmt,
    Buffer,
    BufferRef,
    Call,
    For,
    ForKind,
    IfThenElse,
    Let,
    Load,
    Node,
    Op,
    PrimFunc,
    Rule,
    Stmt,
    Store,
    Var,
    View,
    rewrite,
    statements,
    walk,
)
from tirlite.ir.demand import pass_call
from tirlite.record import record


@record
class RemoveNoOps:
    """Takes out stores to temporaries that nothing reads, then lets, views and allocations without a use, then loops
    and branches that are left empty, until nothing changes.

    What calls foreign code stays, and so does a `while`, which may never end. What would have stopped the kernel in a
    removed store (an index out of bounds, a division by zero) no longer does: this is for functions without errors.
    """

    name: str = "remove-no-ops"

    @pass_call
    def __call__(self, func: PrimFunc) -> PrimFunc:
        while (after := _without_no_ops(func)) is not func:
            func = after
        return func


def _without_no_ops(func: PrimFunc) -> PrimFunc:
    definitions = Definitions(func)
    params = {param for param in func.params if isinstance(param, Buffer)}
    read, used = _uses(func)
    # A view is read where its storage is.
    read = {definitions.root(buffer) for buffer in read}
    unread = {
        stmt.buffer
        for stmt in statements(func.body)
        if isinstance(stmt, Store)
        and (root := definitions.root(stmt.buffer)) not in read | params
        and not (stmt.buffer.volatile or root.volatile)
    }

    def store(node: Store) -> Stmt | tuple[Stmt, ...]:
        return () if node.buffer in unread and not _has_effect(node) else node

    def definition(node: Allocate | View) -> Stmt | tuple[Stmt, ...]:
        return node if node.buffer in used or node.buffer.volatile else ()

    def let(node: Let) -> Stmt | tuple[Stmt, ...]:
        return node if node.var in used or _has_effect(node.value) else ()

    rules: dict[type[Node], Rule] = {
        Store: store,
        Allocate: definition,
        View: definition,
        Let: let,
        For: _loop,
        IfThenElse: _branch,
        AttrStmt: _attribute,
    }
    result = rewrite(func, rules)
    assert isinstance(result, PrimFunc)
    return result


def _uses(func: PrimFunc) -> tuple[set[Buffer], set[Buffer | Var]]:
    """The buffers that are read, or of which that is not known; and all buffers and variables that are mentioned."""
    read: set[Buffer] = set()
    used: set[Buffer | Var] = set()
    for node in _nodes(func):
        if isinstance(node, Load | BufferRef) or (isinstance(node, AttrStmt) and node.buffer is not None):
            assert node.buffer is not None
            read.add(node.buffer)
            used.add(node.buffer)
        elif isinstance(node, Store):
            used.add(node.buffer)
        elif isinstance(node, View):
            used.add(node.source)
        elif isinstance(node, Var):
            used.add(node)
    return read, used


def _nodes(func: PrimFunc) -> list[Node]:
    found = list(walk(func.body))
    shapes = [stmt.buffer.shape for stmt in statements(func.body) if isinstance(stmt, Allocate | View)]
    return found + [node for shape in shapes for extent in shape for node in walk(extent)]


def _has_effect(root: Node) -> bool:
    """Whether an expression does more than compute: it calls foreign code, or hands out an address."""
    return any(
        (isinstance(node, Call) and node.op in (Op.CALL_EXTERN, Op.BARRIER, Op.ACCESS_PTR, Op.ADDRESS_OF))
        or (isinstance(node, Load) and node.buffer.volatile)
        for node in walk(root)
    )


def _loop(node: For) -> Stmt | tuple[Stmt, ...]:
    is_needed = node.body.stmts or node.kind is ForKind.THREAD or _has_effect(node.start) or _has_effect(node.stop)
    return node if is_needed else ()


def _branch(node: IfThenElse) -> Stmt | tuple[Stmt, ...]:
    is_needed = node.then_body.stmts or node.else_body.stmts or _has_effect(node.condition)
    return node if is_needed else ()


def _attribute(node: AttrStmt) -> Stmt | tuple[Stmt, ...]:
    return node if node.body.stmts else ()
