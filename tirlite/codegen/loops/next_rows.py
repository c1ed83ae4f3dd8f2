"""Finds rows that a nest goes through more than once and stores past the caches, to ask for the next one meanwhile.

The first pass over a row waits for memory, and those behind it leave memory alone: what a processor fetches ahead by
itself ends with the row, or with its page. Stores past the caches wait for nothing, so that the next row can come while
they are made: layer norms of rows of 4 to 16 KB took 0.8 to 0.9 of the time.
"""

from __future__ import annotations

from collections.abc import Container

from tirlite.codegen.loops.ahead import Asked
from tirlite.ir.dtype import i64
from tirlite.ir.equal import are_equal
from tirlite.ir.expr import Add, Buffer, IntImm, Load, Min, Ramp, Sub, Var
from tirlite.ir.stmt import For, SeqStmt, Store
from tirlite.ir.walk import loads_in, mentions, statements_of


def next_rows(body: SeqStmt, stores: Container[Store], arrays: Container[Buffer]) -> dict[Store, list[Asked]]:
    """By store, what is asked for where it goes past the caches, in `arrays` of the function's."""
    found: dict[Store, list[Asked]] = {}
    for rows in statements_of(body, For):
        passes = [loop for loop in statements_of(rows.body, For) if next(statements_of(loop.body, For), None) is None]
        read: list[Load] = []
        for loop in passes if rows.step == 1 else ():
            along = [load for load in loads_in(loop.body) if load.buffer in arrays and _is_along(load, rows, loop)]
            again = {load.buffer: load for load in along if any(_is_row_of(load, other) for other in read)}
            first = next((stmt for stmt in loop.body.stmts if isinstance(stmt, Store) and stmt in stores), None)
            if again and first is not None:
                found[first] = [_behind(load, rows.var, loop) for load in again.values()]
            read += along
    return found


def _is_along(load: Load, rows: For, loop: For) -> bool:
    """Whether a loop goes by vectors along a row, which another loop numbers."""
    *outer, along = load.indices or (loop.var,)
    is_numbered = any(each is rows.var for each in outer) and not mentions(outer, loop.var)
    return is_numbered and isinstance(along, Ramp) and along.base is loop.var


def _is_row_of(load: Load, other: Load) -> bool:
    return load.buffer is other.buffer and are_equal(load.indices[:-1], other.indices[:-1])


def _behind(load: Load, row: Var, loop: For) -> Asked:
    """The place in the next row; of the last one, in itself."""
    rows = next(extent for extent, each in zip(load.buffer.shape, load.indices, strict=True) if each is row)
    following = Min(Add(row, IntImm(i64, 1)), Sub(rows, IntImm(i64, 1)))
    indices = (*(following if each is row else each for each in load.indices[:-1]), loop.var)
    return Asked(load.buffer, indices, loop.step * load.buffer.dtype.bytes)
