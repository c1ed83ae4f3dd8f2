"""Schedules stencils that are iterated: tiles of time and space, so that memory is read once for several steps of time.

The nests of a step become one loop over rows, each behind the one before by as many rows as it needs. Rows are ahead by
so many for each step of time that tiles of both keep all orders, and of a few rows several steps are done while they
stay in the second cache. Several workers have tiles at once, each of later steps than the one before it, as many rows
behind as it must be. A loop of too few steps for that goes step by step, and they share its rows.
"""

from __future__ import annotations

from functools import partial

from tirlite.analysis.facts import Facts
from tirlite.ir import Buffer, For, IntImm, Load, Store, Var, statements_of, walk
from tirlite.schedules.annotate import Parallel
from tirlite.schedules.auto.candidates import is_iterated
from tirlite.schedules.auto.trace import Trace
from tirlite.schedules.join import Join
from tirlite.schedules.specialize import Specialize
from tirlite.schedules.tile import Skew, Tile
from tirlite.target import Target

# A nest runs so many rows behind the one before, and is ahead by so many for each step of time, at most.
_MOST_BEHIND, _MOST_AHEAD = 4, 8
# Fewer steps at a time are not worth their conditions.
_LEAST = 2
# So many blocks of steps a worker run at once: fewer have workers wait for rows that others have just written.
_EACH = 2
# A row takes such a part of the first cache: longer ones come from the second one whatever their order is.
_ROW = 2


def scheduled(facts: Facts, target: Target) -> Trace:
    """The steps that schedule the iterated stencils of a function."""
    trace = Trace(facts)
    for loop in [each for each in statements_of(facts.func.body, For) if is_iterated(each)]:
        trace.attempt(partial(_tiled, trace, loop.var, target))
    return trace


def _tiled(trace: Trace, time: Var, target: Target) -> bool:
    """Has a loop over steps of time go by tiles; whether it can."""
    row = target.processor.caches[0] // _ROW
    rows = target.processor.caches[1] // (row * len(_buffers(trace.loop(time))))
    if target.workers > 1 and not _where_often(trace, time, rows // 2):
        return False
    while len(nests := _inside(trace.loop(time))) > 1:
        first, second, *_ = nests
        if not any(trace.attempt(partial(_joined, trace, first, second, by)) for by in range(_MOST_BEHIND + 1)):
            return False
    in_tiles = partial(_in_tiles, trace, time, rows=rows, workers=target.workers)
    return any(trace.attempt(partial(in_tiles, ahead)) for ahead in range(1, _MOST_AHEAD + 1))


def _where_often(trace: Trace, time: Var, least: int) -> bool:
    """Keeps a loop as it is beside, for where it does not run so often; whether it may."""
    count = trace.loop(time).count
    if isinstance(count, IntImm):
        return count.value >= least
    trace.apply(Specialize(trace.name(time), ((time.name, least),)))
    return True


def _joined(trace: Trace, first: For, second: For, behind: int) -> bool:
    trace.apply(Join((trace.name(first.var), trace.name(second.var)), behind))
    return True


def _in_tiles(trace: Trace, time: Var, ahead: int, *, rows: int, workers: int) -> bool:
    """Rows by tiles, of which half are those that later steps of time need beside the others."""
    steps = rows // (2 * ahead)
    if steps < _LEAST:
        return False
    together = 1 if workers == 1 else _EACH * workers
    blocks, within = trace.split(time, steps * together)
    (row,) = _inside(trace.loop(within))
    trace.apply(Skew(trace.name(row.var), trace.name(within), ahead))
    (step,) = _inside(trace.loop(blocks))
    (row,) = _inside(step)
    trace.apply(Tile(((trace.name(step.var), steps if workers > 1 else 0), (trace.name(row.var), ahead * steps))))
    behind = "" if workers == 1 else f", {together} of them one behind the other"
    trace.figures.append(
        f"{steps} steps of time for tiles of {ahead * steps} rows{behind}: each moves {ahead} rows on, and {rows} rows "
        "of half of the first cache fit into the second one"
    )
    if workers > 1:
        _at_once(trace, trace.loop(blocks), ahead)
    return True


def _at_once(trace: Trace, blocks: For, ahead: int) -> None:
    """Has tiles of later steps run beside those of earlier steps that are ahead of them by more than these move on."""
    (part,) = _inside(blocks)
    (tiles,) = _inside(part)
    trace.apply(Skew(trace.name(tiles.var), trace.name(part.var), ahead))
    (tiles,) = _inside(part := _inside(trace.loop(blocks.var))[0])
    trace.apply(Tile(((trace.name(part.var), 0), (trace.name(tiles.var), 1))))
    trace.apply(Parallel(trace.name(part.var)))


def _inside(loop: For) -> list[For]:
    return [stmt for stmt in loop.body.stmts if isinstance(stmt, For)]


def _buffers(loop: For) -> set[Buffer]:
    return {node.buffer for node in walk(loop) if isinstance(node, Load | Store)}
