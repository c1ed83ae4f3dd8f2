"""A buffer marked inside of the loop that allocates it in, the mark around the loop and the buffer before it out.

A double buffer belongs to the loop that takes its copies in turn. Often it is written down where it is filled, with the
Allocate and the mark in the body of the loop. Source: TVM marks the fill, in inject_double_buffer.cc (2017).
"""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.ir import Allocate, AttrStmt, For, Let, PrimFunc, SeqStmt, Stmt, Var, rewrite, statements_of, walk


def loop_around(func: PrimFunc, marked: AttrStmt) -> For | None:
    """The loop that has `marked` in its body, and the Allocate of its buffer."""
    loops = (each for each in statements_of(func.body, For) if marked in each.body.stmts)
    return next((each for each in loops if _allocate(each, marked) is not None), None)


def is_resized(loop: For, marked: AttrStmt) -> bool:
    """Whether the size of the buffer may change from iteration to iteration."""
    assert marked.buffer is not None
    inside = {loop.var, *(each.var for each in loop.body.stmts if isinstance(each, Let))}
    return any(isinstance(node, Var) and node in inside for extent in marked.buffer.shape for node in walk(extent))


def marked_around(func: PrimFunc, marked: AttrStmt, loop: For) -> PrimFunc:
    """`func` with `marked` around `loop` and not in it, and the Allocate of its buffer before that."""
    allocate = _allocate(loop, marked)
    assert allocate is not None
    body = loop.replaced(body=SeqStmt(tuple(_unmarked(loop, allocate, marked))))
    around = allocate, marked.replaced(body=SeqStmt((body,)))

    def moved(node: For) -> Stmt | tuple[Stmt, ...]:
        return around if node is loop else node

    result = rewrite(func, {For: moved})
    assert isinstance(result, PrimFunc)
    return result


def _allocate(loop: For, marked: AttrStmt) -> Allocate | None:
    inside = (each for each in loop.body.stmts if isinstance(each, Allocate) and each.buffer is marked.buffer)
    return next(inside, None)


def _unmarked(loop: For, allocate: Allocate, marked: AttrStmt) -> Iterator[Stmt]:
    for each in loop.body.stmts:
        if each is marked:
            yield from marked.body.stmts
        elif each is not allocate:
            yield each
