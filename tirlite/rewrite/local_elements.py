"""Keeps elements that loops inside of an iteration update in local scalars, so that they stay in registers."""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.analysis.loop_accesses import Access, LoopAccesses, is_same_element
from tirlite.ir import (
    Allocate,
    Buffer,
    Expr,
    For,
    IntImm,
    Load,
    Node,
    Rule,
    SeqStmt,
    Stmt,
    Store,
    Var,
    rewrite,
    walk,
)


def with_local_elements(loop: For, accesses: LoopAccesses) -> SeqStmt:
    """The body of a loop, in which each element that is written in a loop inside of it stands in a local scalar.

    That is done for buffers of which an iteration touches one element, however often loops inside run. What is there
    before is loaded, unless the body begins by storing it, and what is there at the end is stored. The iterations must
    be independent.
    """
    before: list[Stmt] = []
    after: list[Stmt] = []
    cells: dict[Buffer, Buffer] = {}
    top = {stmt: place for place, stmt in enumerate(loop.body.stmts)}
    certain = {*_certain(loop.body)}
    defined_inside = {name for stmt in loop.body.stmts for node in walk(stmt) for name in _defined(node)}
    for root, found in accesses.by_root.items():
        stores = [access for access in found if access.is_write]
        if not stores or all(access.stmt in top for access in stores) or root.volatile:
            continue
        if not any(access.stmt in certain for access in found):
            # There may be no such element: `y[t - 1]` in a loop up to `t`.
            continue
        first = stores[0].node
        if not isinstance(first, Store) or not all(is_same_element(first, access) for access in found):
            continue
        if any(node in defined_inside for index in first.indices for node in walk(index)):
            continue
        cell = cells[root] = Buffer(root.name, root.dtype, (), "local")
        before.append(Allocate(cell, span=first.span))
        if not _is_set_first(found, top):
            before.append(Store(cell, (), Load(root, first.indices), span=first.span))
        after.append(Store(root, first.indices, Load(cell, ()), span=first.span))
    if not cells:
        return loop.body

    def moved(node: Load | Store) -> Node:
        cell = cells.get(node.buffer)
        return node if cell is None else node.replaced(buffer=cell, indices=())

    rules: dict[type[Node], Rule] = {Load: moved, Store: moved}
    body = rewrite(loop.body, rules)
    assert isinstance(body, SeqStmt)
    return SeqStmt((*before, *body.stmts, *after))


def _certain(body: SeqStmt) -> Iterator[Stmt]:
    """The statements that run whenever a body does: its own, and those of loops that have an iteration for sure."""
    for stmt in body.stmts:
        yield stmt
        if isinstance(stmt, For) and stmt.step == 1 and isinstance(stmt.start, IntImm):
            stop = stmt.stop
            least = stop.value if isinstance(stop, IntImm) else None
            if isinstance(stop, Var) and stop.dim is not None:
                least = stop.dim.low
            if least is not None and least > stmt.start.value:
                yield from _certain(stmt.body)


def _is_set_first(found: list[Access], top: dict[Stmt, int]) -> bool:
    """Whether an iteration stores the element before it reads it, whatever loops inside do."""
    first = found[0]
    reads_it = any(not access.is_write for access in found if access.stmt is first.stmt)
    return first.is_write and first.stmt in top and not reads_it


def _defined(node: Node) -> tuple[object, ...]:
    return tuple(getattr(node, name) for name in node.DEFINES) if not isinstance(node, Expr) else ()
