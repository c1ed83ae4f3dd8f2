"""Shares the columns of a nest among workers, where its rows depend on each other.

`for i: for j: y[i, j] = y[i - 1, j] + x[i, j]` goes row by row, but no column depends on another: each worker goes over
the rows of its own strip of columns.
"""

from __future__ import annotations

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.patterns import has_much_to_do
from tirlite.ir.checked import has_check
from tirlite.ir.dtype import i64
from tirlite.ir.expr import GE, Add, Expr, FloorDiv, IntImm, Max, Min, Mul, Select, Sub, Var, const
from tirlite.ir.stmt import For, ForKind, IfThenElse, Let, SeqStmt, Stmt, Store
from tirlite.ir.walk import accesses_in, is_steady, loads_in, mentions, statements, statements_of
from tirlite.rewrite.affine_exprs import folded

# The columns of a strip: at least and at most as many, and a multiple of a line of f32.
_LEAST, _MOST, _LINE = 256, 8192, 64
# Parts of rows are read more slowly than whole rows, by a tenth to a third, and stored more slowly by a half. So strips
# pay for nests of this many elements, or this many with elementary functions, and for this many columns, or this many
# where the nest stores along rows.
_FEWEST, _FEWEST_FUNCTIONS = 1 << 19, 1 << 14
_FEWEST_READ, _FEWEST_STORED = 512, 4096


def shared_columns(loop: For, facts: Facts) -> tuple[Stmt, ...] | None:
    """The statements that replace a loop over rows; None where columns depend on each other, or strips do not pay."""
    *lets, columns = loop.body.stmts
    is_nest = isinstance(columns, For) and all(isinstance(each, Let) for each in lets)
    if not is_nest or loop.kind not in (ForKind.SERIAL, ForKind.REDUCE):
        return None
    assert isinstance(columns, For)
    if columns.kind is not ForKind.SERIAL or columns.step != 1 or has_check(loop):
        return None
    inside = [*statements(columns.body)]
    if not any(isinstance(each, Store) for each in inside) or not all(map(_is_plain, inside)):
        return None
    bounds, own = (columns.start, columns.stop), {loop.var, *(each.var for each in lets if isinstance(each, Let))}
    if not is_steady(*bounds) or mentions(bounds, own) or any(each.buffer.volatile for each in accesses_in(loop)):
        return None
    if not facts.replaces_nothing(loop) or not _have_no_other(loop, columns, facts):
        return None
    # Each strip loads what names in front of a row stand for: behind the stores of other strips to that row.
    stored = {facts.definitions.root(each.buffer) for each in inside if isinstance(each, Store)}
    if any(facts.definitions.root(load.buffer) in stored for load in loads_in(*lets)):
        return None
    return _strips(loop, columns)


def _is_plain(stmt: Stmt) -> bool:
    return isinstance(stmt, Let | Store | IfThenElse)


def _have_no_other(loop: For, columns: For, facts: Facts) -> bool:
    """Whether no column of one row touches what another column of a later row does."""
    if not facts.is_independent(columns):
        return False
    for each in facts.carried_by(loop):
        steps = dict(zip(each.loops, each.steps, strict=True))
        if columns not in steps or steps[columns].direction != "=":
            return False
    return True


def strip_width(columns: Expr, most: int) -> Expr:
    """The columns of a strip, where workers share strips: half of all, of which few strips have the most."""
    lines = FloorDiv(Add(columns, const(2 * _LINE - 1, i64)), const(2 * _LINE, i64))
    return Min(Max(folded(Mul(lines, const(_LINE, i64))), const(_LEAST, i64)), const(most, i64))


def _fewest(loop: For, columns: For) -> tuple[int, int]:
    """The columns and the elements of a nest from which on strips pay."""
    if has_much_to_do(columns):
        return _FEWEST_READ, _FEWEST_FUNCTIONS
    is_stored = any(mentions(each.indices, loop.var) for each in statements_of(columns.body, Store))
    return _FEWEST_STORED if is_stored else _FEWEST_READ, _FEWEST


def _strips(loop: For, columns: For) -> tuple[Stmt, ...] | None:
    """The nest by strips; None where there are known to be too few elements."""
    least, fewest = _fewest(loop, columns)
    of_rows = folded(FloorDiv(const(fewest, i64), Max(loop.count, const(1, i64))))
    least = max(least, of_rows.value) if isinstance(of_rows, IntImm) else least
    if isinstance(columns.count, IntImm) and columns.count.value < least:
        return None
    pays = GE(columns.count, Max(const(least, i64), of_rows))
    wide, number, first = Var("wide"), Var("strip"), Var("first")
    span, count = loop.span, columns.count
    width = Select(pays, strip_width(count, _MOST), Max(count, const(1, i64)))
    strip = columns.replaced(start=first, stop=Min(folded(Add(first, wide)), columns.stop))
    *lets, _ = loop.body.stmts
    body = (
        Let(first, folded(Add(columns.start, Mul(number, wide))), span=span),
        loop.replaced(body=SeqStmt((*lets, strip))),
    )
    strips = FloorDiv(Sub(Add(count, wide), const(1, i64)), wide)
    return (
        Let(wide, width, span=span),
        For(number, const(0, i64), strips, SeqStmt(body), ForKind.PARALLEL, span=span),
    )
