"""Vectorizes loops with dependences between iterations, by vectors no longer than the dependence distance.

LLVM handles independent iterations and constant distances. It does not vectorize loops that work on both ends of an
array, such as a reversal in place, nor distances known at run time, as in `x[i] += x[i - k]`; loops that update every
second element in place it would vectorize by gathers and scatters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.patterns import moved_by
from tirlite.ir.dtype import i64
from tirlite.ir.equal import are_equal
from tirlite.ir.expr import GE, LE, Add, And, Expr, FloorDiv, IntImm, Load, Max, Min, Mul, Or, Ramp, Sub, Var, const
from tirlite.ir.rewrite import substitute
from tirlite.ir.stmt import For, IfThenElse, Let, SeqStmt, Stmt, Store
from tirlite.ir.walk import accesses_in, loads_in, mentions, statements_of, walk
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.vectors.lanes import Lanes, NotVector, held
from tirlite.rewrite.vectors.vector_loops import widths_of
from tirlite.target import Processor

# The lanes of the narrowest vectors, for rows of a few columns.
_FEWEST = 4
# For elements of this many bytes, shuffles that pick every second or third one keep up with loads and stores.
_WORD = 4
_MOST_SKIPPED = 3


def at_distance(loop: For, facts: Facts, processor: Processor) -> tuple[Stmt, ...] | None:
    """The statements that replace an innermost loop of stores and lets; None if the loop stays.

    A vector loads before it stores. So an iteration may load what a later one stores, but what an earlier one stored
    only if no vector holds both. In a loop with a stride, iterations must be independent.
    """
    most, few = widths_of(loop, processor, holds=True)
    if abs(loop.step) > 1:
        if not _skips_few(loop) or not facts.is_independent(loop):
            return None
        most = few
    if facts.is_independent(loop):
        condition: Expr | None = None
    else:
        distances = _distances(loop, facts)
        if not distances or any(isinstance(each, IntImm) and -few < each.value < 0 for each in distances):
            return None
        condition = reduce(And, [_is_apart(each, most) for each in distances])
    try:
        vectors = (*_vectors(loop, dict.fromkeys((most, few, min(few, _FEWEST)))),)
    except NotVector:
        return None
    return vectors if condition is None else (IfThenElse(condition, SeqStmt(vectors), SeqStmt((loop,))),)


def _skips_few(loop: For) -> bool:
    """Whether iterations go along rows of words with a stride small enough for shuffles."""
    nodes = [*accesses_in(loop.body)]
    are_words = all(each.buffer.dtype.bytes >= _WORD for each in nodes)
    rows = [each.indices for each in nodes if each.indices]
    go_along = all(moved_by(index, loop.var) == (index is row[-1]) for row in rows for index in row)
    return abs(loop.step) <= _MOST_SKIPPED and are_words and go_along


def _is_apart(distance: Expr, lanes: int) -> Expr:
    return Or(GE(distance, const(0, i64)), LE(distance, const(-lanes, i64)))


def _distances(loop: For, facts: Facts) -> list[Expr] | None:
    """After how many iterations each loaded element is stored; None if that is not constant throughout the loop."""
    found: list[Expr] = []
    written = {facts.definitions.root(stmt.buffer) for stmt in statements_of(loop.body, Store)}
    for each in facts.carried_by(loop, by_statement=True):
        touches = each.source, each.sink
        store = next((touch for touch in touches if isinstance(touch.node, Store)), None)
        load = next((touch for touch in touches if isinstance(touch.node, Load)), None)
        if store is None or load is None or load.position > store.position:
            return None
        assert isinstance(store.node, Store)
        assert isinstance(load.node, Load)
        distance = _distance(loop, store.node, load.node)
        loads = [] if distance is None else list(loads_in(distance))
        if distance is None or any(facts.definitions.root(node.buffer) in written for node in loads):
            return None
        if not any(are_equal((distance,), (other,)) for other in found):
            found.append(distance)
    return found


def _distance(loop: For, store: Store, load: Load) -> Expr | None:
    """After how many iterations the store reaches the element that the load reads; None if that is not constant."""
    if load.buffer is not store.buffer or not load.indices:
        return None
    if not are_equal(load.indices[:-1], store.indices[:-1]):
        return None
    ends = load.indices[-1], store.indices[-1]
    rows = [*walk(*load.indices[:-1])]
    inside = {stmt.var for stmt in loop.body.stmts if isinstance(stmt, Let)}
    if loop.var in rows or mentions((*ends, *load.indices), inside):
        return None
    if any(moved_by(end, loop.var) != 1 or end.dtype != i64 for end in ends):
        return None
    mine, its = (substitute(end, {loop.var: const(0, i64)}) for end in ends)
    return folded(Sub(mine, its) if loop.step > 0 else Sub(its, mine))


def _vectors(loop: For, widths: Iterable[int]) -> Iterator[Stmt]:
    """Loops over vectors of these widths, from the widest on, and a scalar loop over the rest. Raises NotVector."""
    step, start, stop = const(loop.step, i64), loop.start, loop.stop
    apart = Sub(Max(stop, start), start) if loop.step > 0 else Sub(start, Min(start, stop))
    passed: Expr = Max(apart, const(0, i64))
    if (by := abs(loop.step)) > 1:
        passed = FloorDiv(Add(passed, const(by - 1, i64)), const(by, i64))
    count = yield from held(folded(passed), "count", loop)
    for lanes in widths:
        at = Var(loop.var.name)
        vectors = Lanes(lanes, {loop.var: Ramp(at, step, lanes)}, neighbours=abs(loop.step) == 1)
        whole = Mul(FloorDiv(count, const(lanes, i64)), const(loop.step * lanes, i64))
        end = yield from held(folded(Add(loop.start, whole)), "whole", loop)
        yield For(at, start, end, vectors.block(loop.body), step=loop.step * lanes)
        start = end
    # The bound shows code generation that few iterations are left: LLVM need not vectorize them.
    end = folded(Add(start, const(loop.step * lanes, i64)))
    yield loop.replaced(start=start, stop=Min(end, stop) if loop.step > 0 else Max(end, stop))
