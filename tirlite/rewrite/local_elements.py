"""Keeps elements that loops inside of an iteration update in local scalars, so that they stay in registers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tirlite.analysis.access import Allocation, Touch
from tirlite.analysis.dependence import writes
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
    structural_equal,
    walk,
)


def with_local_elements(loop: For, touches: Mapping[Allocation, Sequence[Touch]]) -> SeqStmt:
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
    for allocation, found in touches.items():
        root = allocation.buffer
        stores = [touch for touch in found if writes(touch)]
        if not stores or all(touch.stmt in top for touch in stores) or root.volatile:
            continue
        if not any(touch.stmt in certain for touch in found):
            # There may be no such element: `y[t - 1]` in a loop up to `t`.
            continue
        first = stores[0].node
        if not isinstance(first, Store) or not all(is_same_element(first, touch) for touch in found):
            continue
        if any(node in defined_inside for index in first.indices for node in walk(index)):
            continue
        cell = cells[root] = Buffer(root.name, root.dtype, (), "local")
        before.append(Allocate(cell, span=first.span))
        if not (writes(found[0]) and found[0].stmt in top):
            before.append(Store(cell, (), Load(root, first.indices), span=first.span))
        after.append(Store(root, first.indices, Load(cell, ()), span=first.span))
    if not cells:
        return loop.body

    def moved(node: Load | Store) -> Node:
        cell = cells.get(node.buffer)
        return node if cell is None else node.replaced(buffer=cell, indices=())

    rules: dict[type[Node], Rule] = {Load: moved, Store: moved}
    body = rewrite(loop.body, rules)
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


def is_same_element(store: Store, touch: Touch) -> bool:
    """Whether an access touches the element that a store writes, told by equal indices that no memory decides."""
    node = touch.node
    if not isinstance(node, Load | Store) or store.buffer is not node.buffer:
        return False
    pairs = [*zip(store.indices, node.indices, strict=True)]
    is_plain = not any(isinstance(node, Load) for index in store.indices for node in walk(index))
    return is_plain and all(a is b or bool(structural_equal(a, b)) for a, b in pairs)


def _defined(node: Node) -> tuple[object, ...]:
    return tuple(getattr(node, name) for name in node.DEFINES) if not isinstance(node, Expr) else ()
