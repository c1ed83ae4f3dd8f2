"""Unrolls the loops over the taps of windows, and combines windows row by row where neighbours share rows.

Then LLVM sees what several taps or rows load in common. `for u in tl.reduce(3): for v in tl.reduce(3): s += x[i + u,
j + v]` becomes `s += x[i + u, j] + x[i + u, j + 1] + ...` for each u: the next window down has two of these sums, too,
and LLVM computes each once where both windows are in one iteration.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from functools import reduce

from tirlite.analysis.loops.patterns import moved_by
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Add, Buffer, Expr, IntImm, Load, Max, Min, Neg, Ramp, Sub, Var, const
from tirlite.ir.node import Node
from tirlite.ir.rewrite import substitute
from tirlite.ir.stmt import Allocate, For, ForKind, Let, SeqStmt, Stmt, Store
from tirlite.ir.walk import accesses_in, loads_in, variables_in, walk
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.vectors.jam import by_rows
from tirlite.rewrite.vectors.lanes import MOST_APART

# The most iterations of a loop over taps, and the most statements of an unrolled loop.
_WIDEST = 16
_MOST_STATEMENTS = 160
_KINDS = (ForKind.SERIAL, ForKind.REDUCE, ForKind.UNROLLED)
# Operations that combine the terms of a window.
_OPERATIONS = (Add, Min, Max)


def count_of(loop: For) -> int | None:
    """The number of taps that a loop goes over; None if it is not a small constant."""
    if loop.step != 1 or loop.kind not in _KINDS or loop.values is None:
        return None
    return len(loop.values) if len(loop.values) <= _WIDEST else None


def written_out(body: SeqStmt, *, shared: bool = False) -> SeqStmt:
    """The body with loops over taps unrolled, if they contain straight-line code, and the result is small.

    With `shared`, only loops whose iterations share loads.
    """
    made = tuple(each for stmt in body.stmts for each in _written_out(stmt, shared=shared))
    is_same = len(made) == len(body.stmts) and all(a is b for a, b in zip(made, body.stmts, strict=True))
    return body if is_same else SeqStmt(made, span=body.span)


def _written_out(stmt: Stmt, *, shared: bool) -> tuple[Stmt, ...]:
    if not isinstance(stmt, For) or count_of(stmt) is None or (shared and not _share(stmt)):
        return (*_by_groups(stmt),) if isinstance(stmt, For) and shared else (stmt,)
    made: list[Stmt] = []
    for tap in stmt.values or ():
        # The bounds of inner loops may have become constant.
        made += written_out(folded(substitute(stmt.body, {stmt.var: const(tap, i64)})), shared=shared).stmts
        if len(made) > _MOST_STATEMENTS or not all(isinstance(each, Store | Let | Allocate) for each in made):
            return (stmt,)
    return (*made,)


def _by_groups(loop: For) -> Iterator[Stmt]:
    """The loop, unrolled by as many iterations as load from the same vectors.

    If lanes are four elements apart, four iterations load whole vectors, each starting one element later.
    """
    body = loop.body.stmts
    apart = max((_apart(node, loop.var) for node in loads_in(loop.body)), default=1)
    is_plain = loop.step == 1 and loop.kind in _KINDS and all(isinstance(each, Store | Let | Allocate) for each in body)
    if apart == 1 or not is_plain:
        yield loop
        return
    copies = (folded(substitute(loop.body, {loop.var: Add(loop.var, const(each, i64))})) for each in range(1, apart))
    yield from by_rows(loop, apart, (*body, *(stmt for copy in copies for stmt in copy.stmts)), body)


def _apart(load: Load, var: Var) -> int:
    """The stride between lanes of a load that moves by one with a variable, if it is short; else 1."""
    last = load.indices[-1] if load.indices else None
    if not isinstance(last, Ramp) or not isinstance(last.stride, IntImm) or not 1 < last.stride.value <= MOST_APART:
        return 1
    return last.stride.value if moved_by(last.base, var) == 1 else 1


def _share(taps: For) -> bool:
    """Whether iterations share what they load: windows overlap along an axis, or taps are in registers.

    Otherwise unrolling them gains nothing, and registers do not hold the sums of many iterations.
    """
    for node in accesses_in(taps.body):
        for index in node.indices:
            names = set(variables_in(index))
            if taps.var in names and (len(names) > 1 or node.buffer.scope == "local"):
                return True
    return False


def by_window_rows(body: SeqStmt, below: Var) -> SeqStmt:
    """The body in which windows that move with `below` are reduced row by row."""
    made = tuple(_rows_first(stmt, below) if isinstance(stmt, For) else stmt for stmt in body.stmts)
    is_same = all(a is b for a, b in zip(made, body.stmts, strict=True))
    return body if is_same else SeqStmt(made, span=body.span)


def _rows_first(rows: For, below: Var) -> Stmt:
    taps = rows.body.stmts[0] if len(rows.body.stmts) == 1 else None
    if not isinstance(taps, For) or count_of(rows) is None or (count_of(taps) or 0) < 2:
        return rows
    may_regroup = rows.kind is taps.kind is ForKind.REDUCE
    results = {stmt.buffer for stmt in taps.body.stmts if isinstance(stmt, Store)}
    made: list[Stmt] = []
    for stmt in taps.body.stmts:
        term = _term(stmt, results, may_regroup=may_regroup)
        if term is None or not _moves_with(term, rows.var, below):
            return rows
        made.append(_row(stmt, term, taps))
    return rows.replaced(body=SeqStmt((*made,), span=rows.body.span))


def _term(stmt: Stmt, results: Container[Buffer], *, may_regroup: bool) -> Expr | None:
    """What a statement combines with a local scalar, if regrouping is allowed and it does not depend on the scalar."""
    value = stmt.value if isinstance(stmt, Store) else None
    if not isinstance(stmt, Store) or not isinstance(value, _OPERATIONS) or value.dtype.lanes != 1:
        return None
    is_own = isinstance(value.a, Load) and value.a.buffer is stmt.buffer and not stmt.indices
    is_exact = may_regroup or not value.dtype.is_float
    reads_result = any(isinstance(node, Load) and node.buffer in results for node in walk(value.b))
    return value.b if is_own and is_exact and not reads_result else None


def _row(stmt: Stmt, term: Expr, taps: For) -> Store:
    """A statement that combines the terms of a row first, and then adds the result."""
    assert isinstance(stmt, Store)
    assert isinstance(stmt.value, _OPERATIONS)
    terms = [folded(substitute(term, {taps.var: const(tap, i64)})) for tap in taps.values or ()]
    return stmt.replaced(value=type(stmt.value)(stmt.value.a, reduce(type(stmt.value), terms)))


def _moves_with(term: Expr, row: Var, below: Var) -> bool:
    """Whether moving by one row equals moving by one window: both variables only occur added together in indices."""
    todo: list[Node] = [term]
    together = False
    while todo:
        node = todo.pop()
        if node is row or node is below:
            return False
        if not isinstance(node, Load):
            todo += node.children()
            continue
        for index in node.indices:
            parts = _added(index)
            if row in parts and below in parts:
                together = True
                parts.remove(row)
                parts.remove(below)
            todo += parts
    return together


def _added(index: Expr) -> list[Expr]:
    """The terms of a sum; a subtrahend counts as a negated term."""
    if isinstance(index, Add):
        return [*_added(index.a), *_added(index.b)]
    return [*_added(index.a), Neg(index.b)] if isinstance(index, Sub) else [index]
