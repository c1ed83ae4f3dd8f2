"""Schedules iterated stencils: tiles of time and space, so that memory is read once for several time steps.

The nests of a time step become one loop over rows, in which each nest runs as many rows late as it needs. Rows are
skewed by time, so that tiles of time and rows preserve all dependences, and a few rows pass through several time steps
while they stay in the second-level cache. Long rows are cut into pieces in the same way, of which the first-level cache
keeps a few lines: meanwhile the nests of a step are one loop over columns, too. Several workers process tiles at once,
each of later time steps than the one before it, and as many rows behind it as necessary. A loop of too few time steps
goes step by step, with its rows shared by workers; so does one over arrays that fit into the second-level cache.
"""

from __future__ import annotations

from functools import partial
from math import prod

from tirlite.analysis.facts import Facts
from tirlite.ir import For, IfThenElse, Let, Var, statements_of
from tirlite.ir.walk import accesses_in
from tirlite.rewrite.on_demand import TightenLoops
from tirlite.schedules.annotate import Parallel
from tirlite.schedules.auto.candidates import is_iterated
from tirlite.schedules.auto.tiling import count_of, is_known
from tirlite.schedules.auto.trace import Trace
from tirlite.schedules.join import Join
from tirlite.schedules.reorder import Distribute
from tirlite.schedules.specialize import Specialize
from tirlite.schedules.tile import Skew, Tile
from tirlite.target import Target

# The greatest delay of a nest behind the one before, and the greatest skew per time step, in rows.
_MOST_BEHIND, _MOST_AHEAD = 4, 8
# Time tiles of fewer steps do not repay their conditions.
_LEAST = 2
# Time blocks per worker that run at once; with fewer, workers wait for rows that others have just written.
_EACH = 2
# Arrays smaller than this part of the L2 cache stay there from one step to the next.
_HELD = 2
# Rows up to this part of the L1 cache; longer ones come from L2 in any order.
_ROW = 2
# This many lines of a piece fill half of L1. Its rows fill half of L2, but are at most this many, which makes memory
# traffic low enough.
_LINES, _MOST_ROWS = 3, 48


def scheduled(facts: Facts, target: Target) -> Trace:
    """The steps that schedule the iterated stencils of a function."""
    trace = Trace(facts)
    for loop in [each for each in statements_of(facts.func.body, For) if is_iterated(each)]:
        for by_pieces in (True, False):
            if trace.attempt(partial(_tiled, trace, loop.var, target, by_pieces=by_pieces)):
                break
    return trace


def _tiled(trace: Trace, time: Var, target: Target, *, by_pieces: bool) -> bool:
    """Tiles a loop over time steps, by whole rows or by pieces of rows; returns whether it could."""
    arrays = {node.buffer for node in accesses_in(trace.loop(time))}
    first, second, _ = target.processor.caches
    row, piece = first // _ROW, 0
    rows = second // (row * len(arrays))
    if by_pieces:
        row = first // (2 * _LINES * len(arrays)) // target.processor.line * target.processor.line
        piece = row // max(each.dtype.bytes for each in arrays)
        rows = min(second // (2 * row * len(arrays)), _MOST_ROWS)
    if not _where_worth_it(trace, time, second // _HELD, rows // 2 if target.workers > 1 else 0):
        return False
    if (behind := _made_one(trace, time, 0)) is None:
        return False
    if by_pieces:
        (over_rows,) = _inside(trace.loop(time))
        if _made_one(trace, over_rows.var, behind) is None:
            return False
        (columns,) = _inside(trace.loop(over_rows.var))
        is_named = Let in columns.body.kinds and _sets_several(columns)
        if is_named or (is_known(columns) and count_of(columns) <= piece):
            return False
    in_tiles = partial(_in_tiles, trace, time, rows=rows, piece=piece, workers=target.workers)
    return any(trace.attempt(partial(in_tiles, ahead)) for ahead in range(1, _MOST_AHEAD + 1))


def _made_one(trace: Trace, around: Var, least: int) -> int | None:
    """Joins the loops inside of a loop, each at least `least` iterations behind the one before.

    Returns the delay that was needed, or None if they cannot be joined.
    """
    while len(nests := _inside(trace.loop(around))) > 1:
        joined = (by for by in range(least, _MOST_BEHIND + 1) if trace.attempt(partial(_joined, trace, nests, by)))
        if (found := next(joined, None)) is None:
            return None
        least = found
    return least


def _where_worth_it(trace: Trace, time: Var, most: int, steps: int) -> bool:
    """Keeps the untiled loop for arrays of at most `most` bytes and for fewer than `steps` steps.

    Returns False if that is always the case.
    """
    loop = trace.loop(time)
    rows = _inside(loop)[0]
    columns = _inside(rows)[0]
    elements = most // sum(each.dtype.bytes for each in {node.buffer for node in accesses_in(loop)})
    least: list[tuple[str, int]] = []
    for loops, number in (((loop,), steps), ((rows, columns), elements)):
        if all(map(is_known, loops)):
            if prod(map(count_of, loops)) < number:
                return False
        elif number:
            least.append((" * ".join(each.var.name for each in loops), number))
    if least:
        trace.apply(Specialize(trace.name(time), tuple(least)))
    return True


def _joined(trace: Trace, nests: list[For], behind: int) -> bool:
    first, second, *_ = nests
    trace.apply(Join((trace.name(first.var), trace.name(second.var)), behind))
    return True


def _in_tiles(trace: Trace, time: Var, ahead: int, *, rows: int, piece: int, workers: int) -> bool:
    """Tiles rows, or pieces of rows, with time; half of a tile's rows are due to the skew."""
    steps = rows // (2 * ahead)
    if steps < _LEAST:
        return False
    together = 1 if workers == 1 else _EACH * workers
    blocks, _ = trace.split(time, steps * together)
    sizes = [steps if workers > 1 else 0, ahead * steps, *([piece] if piece else [])]
    for place in range(1, len(sizes)):
        trace.apply(Skew(trace.name(_nest(trace, blocks)[place].var), trace.name(_nest(trace, blocks)[0].var), ahead))
    nest = _nest(trace, blocks)
    trace.apply(Tile(tuple((trace.name(loop.var), by) for loop, by in zip(nest, sizes, strict=False))))
    behind = "" if workers == 1 else f", {together} of them one behind the other"
    pieces = f" of pieces of {piece} columns" if piece else ""
    fit = f"pieces of {rows} rows" if piece else f"{rows} rows of half of the first cache"
    trace.figures.append(
        f"{steps} steps of time for tiles of {ahead * steps} rows{pieces}{behind}: each moves {ahead} rows on, and "
        f"{fit} fit into the second one"
    )
    if workers > 1:
        _at_once(trace, trace.loop(blocks), ahead)
    if piece:
        *_, innermost = statements_of(trace.loop(blocks), For)
        if _sets_several(innermost):
            trace.apply(Distribute(trace.name(innermost.var), trace.name(innermost.var)))
        trace.apply(TightenLoops())
    return True


def _sets_several(loop: For) -> bool:
    """Whether a loop has several statements besides lets, so that it should be distributed."""
    return sum(not isinstance(stmt, Let) for stmt in loop.body.stmts) > 1


def _nest(trace: Trace, around: Var) -> list[For]:
    """The loops inside of `around` that are perfectly nested, outermost first."""
    found = _inside(trace.loop(around))
    while len(inside := _inside(found[-1])) == 1:
        found += inside
    return found


def _at_once(trace: Trace, blocks: For, ahead: int) -> None:
    """Makes tiles of later steps run in parallel with those of earlier steps that are far enough ahead."""
    (part,) = _inside(blocks)
    (tiles,) = _inside(part)
    trace.apply(Skew(trace.name(tiles.var), trace.name(part.var), ahead))
    (tiles,) = _inside(part := _inside(trace.loop(blocks.var))[0])
    trace.apply(Tile(((trace.name(part.var), 0), (trace.name(tiles.var), 1))))
    trace.apply(Parallel(trace.name(part.var)))


def _inside(loop: For) -> list[For]:
    """The loops in the body of a loop, directly or in a branch."""
    blocks = (stmt.then_body.stmts if isinstance(stmt, IfThenElse) else (stmt,) for stmt in loop.body.stmts)
    return [each for block in blocks for each in block if isinstance(each, For)]
