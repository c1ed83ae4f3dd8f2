"""Writes out the loops over the taps of a window, so that what several taps or rows load is seen to be the same."""

from __future__ import annotations

from tirlite.ir import Allocate, For, ForKind, Let, SeqStmt, Stmt, Store, const, i64, substitute
from tirlite.rewrite.affine_exprs import folded

# The most iterations of one loop, and the most statements that loops inside of a body become.
_WIDEST = 16
_MOST_STATEMENTS = 160
_KINDS = (ForKind.SERIAL, ForKind.REDUCE, ForKind.UNROLLED)


def count_of(loop: For) -> int | None:
    """How many taps a loop goes over; None where it may be many."""
    if loop.step != 1 or loop.kind not in _KINDS or loop.values is None:
        return None
    return len(loop.values) if len(loop.values) <= _WIDEST else None


def written_out(body: SeqStmt) -> SeqStmt:
    """The body with loops over taps written out where they hold straight code, and become little of it."""
    made = tuple(each for stmt in body.stmts for each in _written_out(stmt))
    is_same = len(made) == len(body.stmts) and all(a is b for a, b in zip(made, body.stmts, strict=True))
    return body if is_same else SeqStmt(made, span=body.span)


def _written_out(stmt: Stmt) -> tuple[Stmt, ...]:
    if not isinstance(stmt, For) or count_of(stmt) is None:
        return (stmt,)
    made: list[Stmt] = []
    for tap in stmt.values or ():
        # Bounds of loops inside may be constant now.
        made += written_out(folded(substitute(stmt.body, {stmt.var: const(tap, i64)}))).stmts
        if len(made) > _MOST_STATEMENTS or not all(isinstance(each, Store | Let | Allocate) for each in made):
            return (stmt,)
    return (*made,)
