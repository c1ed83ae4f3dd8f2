"""Schedules stencils that are iterated: tiles of time and space, so that memory is read once for several steps of time.

The nests of a step become one loop over rows, each behind the one before by as many rows as it needs. Rows are ahead by
so many for each step of time that tiles of both keep all orders, and of a few rows several steps are done while they
stay in the second cache. One worker does that: several share rows of one step, not tiles of time.
"""

from __future__ import annotations

from functools import partial

from tirlite.analysis.facts import Facts
from tirlite.analysis.streams import held
from tirlite.ir import Buffer, For, Load, Store, Var, statements_of, walk
from tirlite.schedules.auto.candidates import is_iterated
from tirlite.schedules.auto.trace import Trace
from tirlite.schedules.join import Join
from tirlite.schedules.skew import Skew
from tirlite.schedules.tile import Tile
from tirlite.target import Processor

# A nest runs so many rows behind the one before, and is ahead by so many for each step of time, at most.
_MOST_BEHIND, _MOST_AHEAD = 4, 8
# Fewer steps at a time are not worth their conditions.
_LEAST = 2
# A row takes such a part of the first cache: longer ones come from the second one whatever their order is.
_ROW = 2


def scheduled(facts: Facts, processor: Processor) -> Trace:
    """The steps that schedule the iterated stencils of a function."""
    trace = Trace(facts)
    for loop in [each for each in statements_of(facts.func.body, For) if is_iterated(each)]:
        trace.attempt(partial(_tiled, trace, loop.var, processor))
    return trace


def for_large(by_tiles: Trace, facts: Facts, processor: Processor) -> Trace:
    """The function as it is, where its version for arrays that no cache holds takes these steps."""
    left = Trace(facts)
    if by_tiles.taken:
        left.large_from = held(processor)
        left.figures = [f"where arrays take {left.large_from} bytes or more: {each}" for each in by_tiles.figures]
    return left


def _tiled(trace: Trace, time: Var, processor: Processor) -> bool:
    """Has a loop over steps of time go by tiles; whether it can."""
    while len(nests := _inside(trace.loop(time))) > 1:
        first, second, *_ = nests
        if not any(trace.attempt(partial(_joined, trace, first, second, by)) for by in range(_MOST_BEHIND + 1)):
            return False
    row = processor.caches[0] // _ROW
    rows = processor.caches[1] // (row * len(_buffers(trace.loop(time))))
    return any(trace.attempt(partial(_in_tiles, trace, time, ahead, rows)) for ahead in range(1, _MOST_AHEAD + 1))


def _joined(trace: Trace, first: For, second: For, behind: int) -> bool:
    trace.apply(Join(trace.name(first.var), trace.name(second.var), behind))
    return True


def _in_tiles(trace: Trace, time: Var, ahead: int, rows: int) -> bool:
    """Rows by tiles, of which half are those that later steps of time need beside the others."""
    steps = rows // (2 * ahead)
    if steps < _LEAST:
        return False
    blocks, within = trace.split(time, steps)
    (row,) = _inside(trace.loop(within))
    trace.apply(Skew(trace.name(row.var), trace.name(within), ahead))
    (step,) = _inside(trace.loop(blocks))
    (row,) = _inside(step)
    trace.apply(Tile(((trace.name(step.var), 0), (trace.name(row.var), ahead * steps))))
    trace.figures.append(
        f"{steps} steps of time for tiles of {ahead * steps} rows: each moves {ahead} rows on, and {rows} rows of "
        "half of the first cache fit into the second one"
    )
    return True


def _inside(loop: For) -> list[For]:
    return [stmt for stmt in loop.body.stmts if isinstance(stmt, For)]


def _buffers(loop: For) -> set[Buffer]:
    return {node.buffer for node in walk(loop) if isinstance(node, Load | Store)}
