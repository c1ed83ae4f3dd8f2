"""A buffer marked inside of the loop that it is double for, the mark around the loop and the buffer before it out.

A double buffer belongs to the loop that takes its copies in turn. Often it is marked where it is filled, perhaps in a
loop over the threads of a block, and allocated there too. Source: TVM marks the fill (inject_double_buffer.cc, 2017).
"""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.ir import (
    Allocate,
    AttrStmt,
    For,
    ForKind,
    Let,
    Load,
    Node,
    PrimFunc,
    SeqStmt,
    Stmt,
    Store,
    Var,
    rewrite,
    statements_of,
    walk,
)


def loop_around(func: PrimFunc, marked: AttrStmt) -> For | None:
    """The loop that has `marked` in its body; None where there is none, or `marked` holds the loop that it is about."""
    if _holds_the_loop(func, marked):
        return None
    return next((each for each in statements_of(func.body, For) if marked in each.body.stmts), None)


def _holds_the_loop(func: PrimFunc, marked: AttrStmt) -> bool:
    users = [stmt for stmt in marked.body.stmts if _accesses(stmt, marked)]
    if len(users) != 1 or not isinstance(users[0], For) or users[0].kind is not ForKind.SERIAL:
        return False
    return _accesses(users[0], marked) == _accesses(func.body, marked)


def _accesses(node: Node, marked: AttrStmt) -> int:
    return sum(isinstance(each, Load | Store) and each.buffer is marked.buffer for each in walk(node))


def is_resized(loop: For, marked: AttrStmt) -> bool:
    """Whether the size of the buffer may change from iteration to iteration."""
    assert marked.buffer is not None
    inside = {loop.var, *(each.var for each in loop.body.stmts if isinstance(each, Let))}
    nodes = [node for extent in marked.buffer.shape for node in walk(extent)]
    return any(isinstance(node, Load) or (isinstance(node, Var) and node in inside) for node in nodes)


def marked_around(func: PrimFunc, marked: AttrStmt, loop: For) -> PrimFunc:
    """`func` with `marked` around `loop` and not in it, and the Allocate of its buffer, if it is in it, before that."""
    allocates = [each for each in loop.body.stmts if isinstance(each, Allocate) and each.buffer is marked.buffer]
    body = loop.replaced(body=SeqStmt(tuple(_unmarked(loop, allocates, marked))))
    around = *allocates, marked.replaced(body=SeqStmt((body,)))

    def moved(node: For) -> Stmt | tuple[Stmt, ...]:
        return around if node is loop else node

    return rewrite(func, {For: moved})


def _unmarked(loop: For, allocates: list[Allocate], marked: AttrStmt) -> Iterator[Stmt]:
    for each in loop.body.stmts:
        if each is marked:
            yield from marked.body.stmts
        elif each not in allocates:
            yield each
