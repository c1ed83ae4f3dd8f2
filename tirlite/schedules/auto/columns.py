"""Schedules loops over columns, with a loop down each column inside: running sums, filters, and other recurrences.

The elements of a row are contiguous in memory. So all columns of a block take a step before any takes the next one:
rows are read and written in order, and what a column carries from row to row becomes an element of an array.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.patterns import moved_by
from tirlite.ir import Allocate, Buffer, For, Load, Store, Var, statements_of
from tirlite.ir.walk import accesses_in, mentions
from tirlite.schedules.auto.candidates import is_down_columns
from tirlite.schedules.auto.trace import Trace
from tirlite.schedules.expand import Expand
from tirlite.schedules.handle import loops_around
from tirlite.schedules.reorder import Distribute, Reorder
from tirlite.schedules.specialize import Specialize

# Columns per block: long rows of contiguous memory, but several workers should find a block each.
_ALONE, _SHARED = 1024, 512
# Fewer columns are one or two vectors, which keep what they carry in registers. Applies to columns that carry scalars;
# what is carried in arrays is stored and loaded anyhow.
_FEWEST = 64
# Carried scalars become arrays, loaded and stored in each step; more than this many are better kept in registers.
_MOST_CARRIED = 4


def scheduled(facts: Facts, workers: int) -> Trace:
    """The steps that schedule the loops over columns of a function."""
    trace = Trace(facts)
    block = _ALONE if workers == 1 else _SHARED
    for loop in [each for each in statements_of(facts.func.body, For) if is_down_columns(each)]:
        steps = [stmt.var for stmt in loop.body.stmts if isinstance(stmt, For)]
        if _goes_along_rows(loop, steps) and facts.is_independent(loop):
            trace.attempt(partial(_schedule, trace, loop.var, steps, block))
    return trace


def _goes_along_rows(loop: For, steps: Sequence[Var]) -> bool:
    """Whether neighbouring columns access neighbouring elements, and each step of a column stores to another row."""
    own = {stmt.buffer for stmt in loop.body.stmts if isinstance(stmt, Allocate)}
    if len(own) > _MOST_CARRIED or any(each.shape or each.volatile for each in own):
        return False
    accesses = [node for node in accesses_in(loop.body) if node.buffer not in own]
    return all(_is_beside(each, loop.var, steps) for each in accesses) and any(
        isinstance(each, Store) and mentions(each.indices, steps) for each in accesses
    )


def _is_beside(access: Load | Store, column: Var, steps: Sequence[Var]) -> bool:
    """Whether neighbouring columns access neighbouring elements of a row, or all the same element."""
    if not access.indices:
        return True
    *rows, last = access.indices
    if mentions(rows, column):
        return False
    is_along = moved_by(last, column) == 1 and not any(mentions(last, var) for var in steps)
    return is_along or not mentions(last, column)


def _schedule(trace: Trace, columns: Var, loops: Sequence[Var], block: int) -> bool:
    """Makes the columns of each block go from row to row together."""
    if any(isinstance(stmt, Allocate) for stmt in trace.loop(columns).body.stmts):
        count = trace.loop(columns).values
        if count is None:
            trace.apply(Specialize(trace.name(columns), ((columns.name, _FEWEST),)))
        elif len(count) < _FEWEST:
            return False
    _, inner = trace.split(columns, block)
    own: list[Buffer] = [stmt.buffer for stmt in trace.loop(inner).body.stmts if isinstance(stmt, Allocate)]
    for buffer in own:
        trace.apply(Expand(buffer.name, trace.name(inner)))
    for steps in loops:
        for behind in (True, False):
            trace.apply(Distribute(trace.name(steps), trace.name(_around(trace, steps)), behind))
        trace.apply(Reorder((trace.name(steps), trace.name(_around(trace, steps)))))
    trace.figures.append(f"blocks of {block} columns of `{columns.name}`, which go from row to row together")
    return True


def _around(trace: Trace, var: Var) -> Var:
    """The variable of the loop around the one over `var`."""
    around = next(around for loop, around in loops_around(trace.facts.func) if loop.var is var)
    return around[-1].var
