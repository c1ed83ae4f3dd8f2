"""Takes in several rows at once where a loop adds one row after the other to a row of results.

`for i: for j: y[j] += a[i, j]` loads and stores each element of `y` once for each row. Four rows at once do that once,
in the same order for each element.
"""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.analysis.facts import Facts
from tirlite.ir import Expr, For, ForKind, IntImm, Let, Load, SeqStmt, Stmt, Store, walk
from tirlite.ir.checked import has_check
from tirlite.rewrite.jam import Jam
from tirlite.rewrite.lanes import NotVector, held, is_at, iterations, last_whole, may_fault

# Rows of fewer elements than this are known to take too little.
_SHORTEST = 16


def rows_together(loop: For, inner: For, rows: int, facts: Facts) -> tuple[Stmt, ...] | None:
    """So many iterations of a loop with `inner` alone in it; None where that cannot be, or does not pay."""
    if inner.kind is not ForKind.SERIAL or inner.step != 1 or loop.step != 1:
        return None
    if not _is_long(loop, rows) or not _is_long(inner, _SHORTEST) or has_check(loop):
        return None
    if not _updates_alone(inner, facts) or not facts.is_independent(inner):
        return None
    *lets, store = inner.body.stmts
    assert isinstance(store, Store)
    if loop.kind is ForKind.REDUCE and all(isinstance(extent, IntImm) for extent in store.buffer.shape):
        # Blocks of iterations may have an array of their own.
        return None
    root = facts.definitions.root(store.buffer)
    ends = (node for end in (loop.start, loop.stop) for node in walk(end))
    if any(isinstance(node, Load) and facts.definitions.root(node.buffer) is root for node in ends):
        return None
    moving = {loop.var, *(let.var for let in lets if isinstance(let, Let))}
    if any(node in moving or isinstance(node, Load) for index in store.indices for node in walk(index)):
        return None
    try:
        return Jam(loop.var, rows).block(SeqStmt((inner,))).stmts
    except NotVector:
        return None


def by_rows(loop: For, number: int, rows: tuple[Stmt, ...], single: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """The loop with so many iterations at once, and what is left."""
    count = yield from held(iterations(loop), "count", loop)
    middle = last_whole(loop, count, number)
    yield loop.replaced(stop=middle, step=number, body=SeqStmt(rows))
    yield loop.replaced(start=middle, body=SeqStmt(single))


def _is_long(loop: For, least: int) -> bool:
    count = iterations(loop)
    return not isinstance(count, IntImm) or count.value >= least


def _updates_alone(inner: For, facts: Facts) -> bool:
    """Whether iterations compute a new value of an element from the old one, neighbours of neighbours in memory."""
    *lets, store = inner.body.stmts or (None,)
    if not isinstance(store, Store) or not store.indices or store.buffer.volatile or store.value.dtype.lanes > 1:
        return False
    if not all(isinstance(let, Let) for let in lets) or not any(node is inner.var for node in walk(store.indices[-1])):
        return False
    root = facts.definitions.root(store.buffer)
    has_old = False
    for stmt in (*lets, store):
        assert isinstance(stmt, Let | Store)
        for node in walk(stmt.value):
            if isinstance(node, Expr) and may_fault(node):
                return False
            if isinstance(node, Load) and facts.definitions.root(node.buffer) is root:
                if stmt is not store or not is_at(node, store):
                    return False
                has_old = True
            if isinstance(node, Load) and node.buffer.volatile:
                return False
    return has_old
