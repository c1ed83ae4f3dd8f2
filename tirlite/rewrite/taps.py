"""Writes out the loops over the taps of a window, so that what several taps or rows load is seen to be the same."""

from __future__ import annotations

from tirlite.ir import For, ForKind, IntImm, Let, SeqStmt, Stmt, Store, const, i64, substitute
from tirlite.rewrite.affine_exprs import folded

# The most iterations of one loop, and the most statements that loops inside of a body become.
_WIDEST = 16
_MOST_STATEMENTS = 160
_KINDS = (ForKind.SERIAL, ForKind.REDUCE, ForKind.UNROLLED)


def count_of(loop: For) -> int | None:
    """How many taps a loop goes over; None where it may be many."""
    if loop.step != 1 or loop.kind not in _KINDS:
        return None
    if not (isinstance(loop.start, IntImm) and isinstance(loop.stop, IntImm)):
        return None
    count = loop.stop.value - loop.start.value
    return count if 1 < count <= _WIDEST else None


def written_out(body: SeqStmt) -> SeqStmt:
    """The body with loops over taps written out where they hold nothing but stores and lets, and become few of them."""
    made = tuple(each for stmt in body.stmts for each in _written_out(stmt))
    return body if len(made) == len(body.stmts) else SeqStmt(made, span=body.span)


def _written_out(stmt: Stmt) -> tuple[Stmt, ...]:
    if not isinstance(stmt, For) or (count := count_of(stmt)) is None:
        return (stmt,)
    body = written_out(stmt.body)
    is_plain = all(isinstance(each, Store | Let) for each in body.stmts)
    if not is_plain or count * len(body.stmts) > _MOST_STATEMENTS:
        return (stmt,)
    assert isinstance(stmt.start, IntImm)
    first = stmt.start.value
    copies = (folded(substitute(body, {stmt.var: const(first + tap, i64)})) for tap in range(count))
    return tuple(each for copy in copies for each in copy.stmts)
