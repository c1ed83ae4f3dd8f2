"""Interleaves several consecutive rows in one loop, in which each row runs some columns behind the row before it.

`t[i, j] = t[i, j - 1] + t[i - 1, j]` waits for the element before. Four rows have four such elements in flight, as a
row needs of the one before it only elements that are far enough behind.
"""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.dependence import Dependence, DependenceKind
from tirlite.ir.checked import has_check
from tirlite.ir.dtype import i64
from tirlite.ir.expr import GE, Add, Expr, IntImm, Load, Mul, Select, Sub, Var, const
from tirlite.ir.node import Node
from tirlite.ir.rewrite import substitute
from tirlite.ir.stmt import For, ForKind, IfThenElse, Let, SeqStmt, Stmt, Store
from tirlite.ir.walk import statements, walk
from tirlite.rewrite.affine_exprs import folded, shifted
from tirlite.rewrite.vectors.lanes import held, last_whole, may_fault

# Rows taken together, and the greatest delay between two of them, in columns.
_ROWS, _FARTHEST = 4, 4
# Shorter rows do not pay.
_SHORTEST = 32
# A longer body keeps the processor busy by itself.
_MOST_NODES = 200


def staggered(loop: For, inner: For, facts: Facts) -> tuple[Stmt, ...] | None:
    """What replaces a loop over rows that only contains a loop over columns; None if it stays.

    Applies if columns wait for each other. Rows may read what rows around them write.
    """
    if loop.step != 1 or inner.step != 1 or inner.kind is not ForKind.SERIAL or not _is_plain(loop, inner):
        return None
    if not facts.replaces_nothing(loop) or not any(map(_waits, facts.carried_by(inner))):
        return None
    behind = _behind(loop, facts)
    return None if behind is None else (*_rows(loop, inner, behind),)


def _is_plain(loop: For, inner: For) -> bool:
    """Whether all rows have the same columns, and only load and store."""
    nodes = [*walk(inner.body)]
    bounds = [*walk(inner.start), *walk(inner.stop)]
    is_same = loop.var not in bounds and not any(isinstance(node, Load) for node in bounds)
    is_known = all(isinstance(stmt, Store | Let | IfThenElse) for stmt in statements(inner.body))
    is_short = isinstance(count := inner.count, IntImm) and count.value < _SHORTEST
    if not (is_same and is_known and len(nodes) <= _MOST_NODES) or is_short or has_check(inner):
        return False
    return not any(_stays(node) for node in nodes)


def _stays(node: Node) -> bool:
    return (isinstance(node, Expr) and may_fault(node)) or (isinstance(node, Load | Store) and node.buffer.volatile)


def _is_free(dependence: Dependence) -> bool:
    """Whether a dependence is between updates of integers, which may be reordered."""
    node = dependence.source.node
    return dependence.is_reduction and isinstance(node, Load | Store) and not node.buffer.dtype.is_float


def _waits(dependence: Dependence) -> bool:
    """Whether an iteration waits for a float of an earlier one; integers have too little latency."""
    node = dependence.source.node
    return dependence.kind is DependenceKind.FLOW and isinstance(node, Load | Store) and node.buffer.dtype.is_float


def _behind(loop: For, facts: Facts) -> int | None:
    """The delay in columns of each row behind the one before that preserves all dependences; None if too large."""
    most = 0
    for each in facts.carried_by(loop):
        if _is_free(each):
            continue
        rows, columns = each.steps
        if columns.direction in ("=", "<"):
            continue
        if not isinstance(columns.distance, int):
            return None
        most = max(most, -(columns.distance // (rows.distance if isinstance(rows.distance, int) else 1)))
    return most if most <= _FARTHEST else None


def _rows(loop: For, inner: For, behind: int) -> Iterator[Stmt]:
    """The loop over blocks of rows, and single rows for the remainder, or if there are too few columns."""
    last = (_ROWS - 1) * behind
    count = yield from held(folded(loop.count), "count", loop)
    middle = last_whole(loop, count, _ROWS)
    if behind:
        columns = inner.count
        middle = Select(GE(columns, const(max(_SHORTEST, last), i64)), middle, loop.start)
    middle = yield from held(folded(middle), "middle", loop)
    copies = ({loop.var: shifted(loop.var, row), inner.var: shifted(inner.var, -behind * row)} for row in range(_ROWS))
    together = SeqStmt(tuple(stmt for copy in copies for stmt in substitute(inner.body, copy).stmts))
    block = [inner.replaced(start=folded(shifted(inner.start, last)), body=together)]
    if behind:
        block = [_triangle(loop, inner, behind, False), *block, _triangle(loop, inner, behind, True)]
    yield loop.replaced(stop=middle, step=_ROWS, body=SeqStmt((*block,)))
    yield loop.replaced(start=middle)


def _triangle(loop: For, inner: For, behind: int, is_end: bool) -> For:
    """The iterations of a block that run before all its rows are active, or, with `is_end`, after that."""
    row = Var(loop.var.name)
    first, stop = (1, _ROWS) if is_end else (0, _ROWS - 1)
    left = Sub(row, loop.var) if is_end else Sub(shifted(loop.var, stop), row)
    apart = folded(Mul(const(behind, i64), left))
    start, end = (Sub(inner.stop, apart), inner.stop) if is_end else (inner.start, Add(inner.start, apart))
    columns = inner.replaced(start=folded(start), stop=folded(end), body=substitute(inner.body, {loop.var: row}))
    return For(row, shifted(loop.var, first), shifted(loop.var, stop), SeqStmt((columns,)))
