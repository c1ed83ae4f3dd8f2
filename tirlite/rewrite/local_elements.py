"""Keeps elements that iterations, or loops inside of them, update in local scalars, so that they stay in registers."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

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
    stores: dict[Buffer, Store] = {}
    begun: set[Buffer] = set()
    top = {*loop.body.stmts}
    certain = {*_certain(loop.body)}
    defined_inside = {name for stmt in loop.body.stmts for node in walk(stmt) for name in _defined(node)}
    for allocation, found in touches.items():
        root = allocation.buffer
        written = [touch for touch in found if writes(touch)]
        if not written or all(touch.stmt in top for touch in written) or root.volatile:
            continue
        if not any(touch.stmt in certain for touch in found):
            # There may be no such element: `y[t - 1]` in a loop up to `t`.
            continue
        first = written[0].node
        if not isinstance(first, Store) or not all(is_same_element(first, touch) for touch in found):
            continue
        if any(node in defined_inside for index in first.indices for node in walk(index)):
            continue
        stores[root] = first
        if writes(found[0]) and found[0].stmt in top:
            begun.add(root)
    return in_scalars(loop.body, stores, begun) if stores else loop.body


def in_scalars(body: SeqStmt, stores: Mapping[Buffer, Store], begun: Container[Buffer]) -> SeqStmt:
    """The body with the one element of each buffer that it touches, where `stores` write it, in a local scalar.

    What is there before is loaded, but for buffers that are `begun` by a store, and what is there at the end is stored.
    """
    cells = {buffer: Buffer(buffer.name, buffer.dtype, (), "local") for buffer in stores}
    before: list[Stmt] = []
    after: list[Stmt] = []
    for buffer, store in stores.items():
        cell = cells[buffer]
        before.append(Allocate(cell, span=store.span))
        if buffer not in begun:
            before.append(Store(cell, (), Load(buffer, store.indices), span=store.span))
        after.append(Store(buffer, store.indices, Load(cell, ()), span=store.span))

    def moved(node: Load | Store) -> Node:
        cell = cells.get(node.buffer)
        return node if cell is None else node.replaced(buffer=cell, indices=())

    rules: dict[type[Node], Rule] = {Load: moved, Store: moved}
    return SeqStmt((*before, *rewrite(body, rules).stmts, *after))


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
