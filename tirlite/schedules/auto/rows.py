"""Schedules loops over rows, each of which goes through several loops, as in softmax or attention.

If one of these loops reads data common to all rows, as the keys of attention, rows are processed in blocks: temporaries
of a row get an element for each row of a block, and each loop covers the block before the next one does. Products of
vectors so become products of matrices, scheduled as such; in the loops between, each row is a lane of a vector. An
elementary function that several loops compute of the same operand is computed once.
"""

from __future__ import annotations

from collections.abc import Container
from contextlib import suppress
from functools import partial

from tirlite.analysis.facts import Facts
from tirlite.diag import KernelError
from tirlite.ir import Allocate, Buffer, For, ForKind, IntImm, Let, PrimFunc, Var, statements_of, walk
from tirlite.ir.walk import loads_in, stored_in
from tirlite.schedules.annotate import Parallel
from tirlite.schedules.auto.candidates import is_row
from tirlite.schedules.auto.contraction import contractions
from tirlite.schedules.auto.contraction_steps import MASKED_BYTES, steps
from tirlite.schedules.auto.tiling import Tiling
from tirlite.schedules.auto.trace import Trace
from tirlite.schedules.expand import Expand
from tirlite.schedules.handle import LoopName, loops_around
from tirlite.schedules.precompute import Precompute
from tirlite.schedules.reorder import Distribute
from tirlite.schedules.specialize import Specialize
from tirlite.schedules.vectorize import Vectorize

_PLAIN = (ForKind.SERIAL, ForKind.PARALLEL)


def scheduled(facts: Facts, tiling: Tiling) -> Trace:
    """The steps that schedule the loops over rows of a function."""
    trace = Trace(facts)
    done: set[Var] = set()
    while (row := _next_row(trace.facts.func, done)) is not None:
        done.add(row.var)
        before = {loop.var for loop, _ in loops_around(trace.facts.func)}
        if trace.attempt(partial(_schedule, trace, row.var, tiling)):
            done |= {loop.var for loop in statements_of(row, For)}
            done |= {loop.var for loop, _ in loops_around(trace.facts.func)} - before
    return trace


def _next_row(func: PrimFunc, done: set[Var]) -> For | None:
    """The first loop over rows that is not in `done`, outer loops first."""
    for loop, _ in loops_around(func):
        if loop.kind in _PLAIN and loop.step == 1 and is_row(loop) and loop.var not in done:
            return loop
    return None


def _schedule(trace: Trace, row: Var, tiling: Tiling) -> bool:
    """Schedules a loop over rows; returns whether it did."""
    loop = trace.loop(row)
    if any(isinstance(stmt, Let) for stmt in loop.body.stmts) or not trace.facts.is_independent(loop):
        return False
    own = [stmt for stmt in loop.body.stmts if isinstance(stmt, Allocate)]
    kept = {stmt.buffer for stmt in own}
    products = {stage.var for stage in _stages(trace, row) if _is_product(stage, row, kept)}
    # A temporary with two axes, or a known size, is no row.
    is_long = any(not isinstance(extent, IntImm) for stmt in own for extent in stmt.buffer.shape)
    is_long = is_long and all(len(stmt.buffer.shape) < 2 for stmt in own)
    count = loop.stop.value if isinstance(loop.stop, IntImm) and isinstance(loop.start, IntImm) else None
    block = tiling.row_bytes // max((stmt.buffer.dtype.bytes for stmt in own), default=4)
    if not (products and is_long and (count is None or count >= block)):
        return False
    if count is None:
        first = next(stage.var.name for stage in _stages(trace, row) if stage.var in products)
        least = (row.name, block), (first, tiling.least_rows)
        if not any(
            trace.attempt(partial(trace.takes, (Specialize(each, least),))) for each in _alone_around(trace, row)
        ):
            return False
    trace.figures.append(f"blocks of {block} rows, which take the lanes of {tiling.row_bytes} bytes of vectors")
    for var in [stage.var for stage in _stages(trace, row)]:
        trace.attempt(partial(_precompute, trace, row, var))
    _in_blocks(trace, row, block, products, tiling)
    return True


def _alone_around(trace: Trace, row: Var) -> list[LoopName]:
    """The loop over rows and those perfectly nested around it, outermost first."""
    loop, around = next(found for found in loops_around(trace.facts.func) if found[0].var is row)
    alone = [loop]
    for each in around[::-1]:
        if each.body.stmts != (alone[0],):
            break
        alone.insert(0, each)
    return [trace.name(each.var) for each in alone]


def _is_product(stage: For, row: Var, own: Container[Buffer]) -> bool:
    """Whether an inner loop reads a matrix that is the same for all rows, indexed by that loop and one inside of it.

    Buffers in `own` are allocated by each row, so not common to all.
    """
    inside = {each.var for each in statements_of(stage, For)}
    for load in (node for node in loads_in(stage) if node.buffer not in own):
        named = {*walk(*load.indices)}
        if len(named & inside) > 1 and row not in named:
            return True
    return False


def _stages(trace: Trace, row: Var) -> list[For]:
    """The loops directly in the body of the one over rows."""
    return [stmt for stmt in trace.loop(row).body.stmts if isinstance(stmt, For)]


def _precompute(trace: Trace, row: Var, var: Var) -> bool:
    """Precomputes the elementary function of a loop; returns whether several loops use it."""
    before = {loop.var for loop, _ in loops_around(trace.facts.func)}
    trace.apply(Precompute(trace.name(var)))
    new = next(loop for loop, _ in loops_around(trace.facts.func) if loop.var not in before)
    kept = stored_in(new)
    loads = [{node.buffer for node in loads_in(stmt)} for stmt in _stages(trace, row)]
    return sum(not kept.isdisjoint(each) for each in loads) > 1


def _in_blocks(trace: Trace, row: Var, block: int, products: set[Var], tiling: Tiling) -> None:
    """Splits rows into blocks, and makes each loop of a row cover the block before the next one."""
    outer, inner = trace.split(row, block)
    trace.apply(Parallel(trace.name(outer)))
    for stmt in [*trace.loop(inner).body.stmts]:
        if isinstance(stmt, Allocate):
            trace.apply(Expand(stmt.buffer.name, trace.name(inner)))
    nests: list[Var] = []
    for var in [stage.var for stage in _stages(trace, inner) if stage.var in products]:
        for behind in (False, True):
            before = {loop.var for loop, _ in loops_around(trace.facts.func)}
            trace.apply(Distribute(trace.name(var), trace.name(inner), behind))
            nests += (loop.var for loop, _ in loops_around(trace.facts.func) if loop.var not in before)
    for var in (*nests, inner):
        if not any(isinstance(stmt, For) and stmt.var in products for stmt in trace.loop(var).body.stmts):
            has_masks = tiling.vector_bytes >= MASKED_BYTES
            widths = (block,) if has_masks else (block, block // 4)
            with suppress(KernelError):
                trace.apply(Vectorize(trace.name(var), widths, padded=has_masks, masked=has_masks))
    _tile_products(trace, nests, tiling)


def _tile_products(trace: Trace, nests: list[Var], tiling: Tiling) -> None:
    """Schedules the products of a block as matrix products, without the tests whether they are large enough."""
    for nest in nests:
        found = next((each for each in contractions(trace.facts, tiling) if each.loops[0].var is nest), None)
        if found is not None:
            made = (step for step in steps(found, trace.facts, tiling) if not isinstance(step, Specialize))
            trace.attempt(partial(trace.takes, made))
