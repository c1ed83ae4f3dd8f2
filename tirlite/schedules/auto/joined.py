"""Joins a nest with the one before that fills what it reads, where some rows at once need few rows of that.

All that they need stays in registers: what is computed for one row serves those around it, and what is computed again
for the next few rows takes less time than to keep it in a tile of a cache. Reading and writing go on side by side.
"""

from __future__ import annotations

from tirlite.analysis.work import mentions
from tirlite.ir import (
    Add,
    Binary,
    Buffer,
    Call,
    Compare,
    Expr,
    For,
    IntImm,
    Let,
    Load,
    Select,
    Store,
    Sub,
    Unary,
    Var,
    walk,
)
from tirlite.schedules.auto.trace import Trace
from tirlite.schedules.handle import loops_around, name_of
from tirlite.schedules.inline import Inline
from tirlite.schedules.unroll_jam import UnrollJam
from tirlite.target import Processor

# So many rows go together.
_ROWS = 4
# Each value that is kept for them takes two registers, and all of them half of what there is.
_VECTORS = 2
_COUNTED = (Load, Binary, Unary, Compare, Select)


def join_rows(trace: Trace, loops: list[For], fill: list[For], processor: Processor, tile: int) -> bool:
    """Has a nest of `loops` compute what a nest before stores, for some rows at once; whether that takes less.

    Otherwise tiles of so many rows would be computed right before they are read.
    """
    store, body = _only_store(fill[-1]), loops[-1].body.stmts
    if store is None or len(loops) < 2 or not all(isinstance(stmt, Store | Let) for stmt in body):
        return False
    loads = [node for stmt in body for node in walk(stmt) if isinstance(node, Load) and node.buffer is store.buffer]
    places = [_place(load, loops) for load in loads]
    known = {place for place in places if place is not None}
    if not known or None in places or any(isinstance(node, Call) for node in walk(store.value)):
        return False
    own, rows = _operations(store.value), {row for row, _ in known}
    reach = max(rows) - min(rows)
    computed = {(row + at, column) for row, column in known for at in range(_ROWS)}
    kept = _VECTORS * len({row for row, _ in computed})
    by_tiles = own * (tile + reach) / tile + 1 + len(known)
    by_rows = own * len(computed) / _ROWS
    if by_rows > by_tiles or 2 * kept > processor.registers:
        return False
    trace.apply(Inline(name_of(trace.facts.func, store.buffer)))
    trace.apply(UnrollJam(trace.name(_around(trace, _stored(loops[-1]))), _ROWS))
    trace.figures.append(
        f"{_ROWS} rows at once, which compute {by_rows:.1f} operations for each element of `{store.buffer.name}`; "
        f"tiles of {tile} rows would take {by_tiles:.1f}"
    )
    return True


def _only_store(loop: For) -> Store | None:
    store = loop.body.stmts[0] if len(loop.body.stmts) == 1 else None
    return store if isinstance(store, Store) else None


def _stored(loop: For) -> Buffer:
    return next(stmt.buffer for stmt in loop.body.stmts if isinstance(stmt, Store))


def _around(trace: Trace, buffer: Buffer) -> Var:
    """The variable of the loop around the innermost one that stores into a buffer."""
    for loop, around in loops_around(trace.facts.func):
        if around and any(isinstance(stmt, Store) and stmt.buffer is buffer for stmt in loop.body.stmts):
            return around[-1].var
    raise AssertionError(buffer.name)


def _place(load: Load, loops: list[For]) -> tuple[int, int] | None:
    """How many rows and columns a load lies away from its iteration; None where these do not tell."""
    row, column = loops[-2].var, loops[-1].var
    if len(load.indices) < 2:
        return None
    apart = [_distance(index, var) for index, var in zip(load.indices[-2:], (row, column), strict=True)]
    if None in apart or any(mentions(index, var) for index in load.indices[:-2] for var in (row, column)):
        return None
    return apart[0] or 0, apart[1] or 0


def _distance(index: Expr, var: Var) -> int | None:
    if index is var:
        return 0
    if isinstance(index, Add | Sub) and index.a is var and isinstance(index.b, IntImm):
        return index.b.value if isinstance(index, Add) else -index.b.value
    return None


def _operations(value: Expr) -> int:
    """How many operations compute a value, and load what it is of."""
    count, todo = 0, [value]
    while todo:
        node = todo.pop()
        count += isinstance(node, _COUNTED)
        todo += () if isinstance(node, Load) else [each for each in node.children() if isinstance(each, Expr)]
    return count
