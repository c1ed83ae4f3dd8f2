"""Finds rows that a nest reads more than once before non-temporal stores, to prefetch the next row meanwhile.

The first pass over a row waits for memory, and later passes leave memory idle, as hardware prefetches end with the row
or its page. Non-temporal stores do not wait for memory, so the next row can arrive during them: layer norms of rows of
4 to 16 KB took 0.8 to 0.9 of the time.
"""

from __future__ import annotations

from collections.abc import Container

from tirlite.codegen.loops.ahead import Prefetch
from tirlite.codegen.loops.carried import are_in_one_row
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Add, Buffer, IntImm, Load, Min, Ramp, Sub, Var
from tirlite.ir.stmt import For, SeqStmt, Store
from tirlite.ir.walk import loads_in, mentions, statements_of


def next_rows(body: SeqStmt, stores: Container[Store], arrays: Container[Buffer]) -> dict[Store, list[Prefetch]]:
    """The prefetches that accompany each non-temporal store, from `arrays` of the function."""
    found: dict[Store, list[Prefetch]] = {}
    for rows in statements_of(body, For):
        passes = [loop for loop in statements_of(rows.body, For) if next(statements_of(loop.body, For), None) is None]
        read: list[Load] = []
        for loop in passes if rows.step == 1 else ():
            along = [load for load in loads_in(loop.body) if load.buffer in arrays and _is_along(load, rows, loop)]
            again = {load.buffer: load for load in along if any(are_in_one_row(load, other) for other in read)}
            first = next((stmt for stmt in loop.body.stmts if isinstance(stmt, Store) and stmt in stores), None)
            if again and first is not None:
                found[first] = [_behind(load, rows.var, loop) for load in again.values()]
            read += along
    return found


def _is_along(load: Load, rows: For, loop: For) -> bool:
    """Whether a load reads vectors along a row, and the loop `rows` selects the row."""
    *outer, along = load.indices or (loop.var,)
    is_numbered = any(each is rows.var for each in outer) and not mentions(outer, loop.var)
    return is_numbered and isinstance(along, Ramp) and along.base is loop.var


def _behind(load: Load, row: Var, loop: For) -> Prefetch:
    """The same place in the next row; in the last row, the place itself."""
    rows = next(extent for extent, each in zip(load.buffer.shape, load.indices, strict=True) if each is row)
    following = Min(Add(row, IntImm(i64, 1)), Sub(rows, IntImm(i64, 1)))
    indices = (*(following if each is row else each for each in load.indices[:-1]), loop.var)
    return Prefetch(load.buffer, indices, loop.step * load.buffer.dtype.bytes)
