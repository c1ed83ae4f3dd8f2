"""Vectorizes loops with dependences between iterations, by vectors no longer than the dependence distance.

LLVM handles independent iterations and constant distances. It does not vectorize loops that work on both ends of an
array, such as a reversal in place, nor distances known at run time, as in `x[i] += x[i - k]`; loops that update every
second element in place it would vectorize by gathers and scatters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce

from tirlite.analysis.access import Touch
from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.patterns import moved_by
from tirlite.ir.dtype import i64
from tirlite.ir.equal import are_equal
from tirlite.ir.expr import (
    GE,
    LE,
    Add,
    And,
    Expr,
    FloorDiv,
    IntImm,
    Load,
    Max,
    Min,
    Mul,
    Neg,
    Or,
    Ramp,
    Sub,
    Var,
    const,
)
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

    A vector does a statement for all of its iterations before it does the next one. So an iteration may access early
    in the body what a later one accesses further down, but the other way round only if no vector holds both. In a loop
    with a stride, iterations must be independent.
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
        together = Min(_passed(loop), const(most, i64))
        open_ones = [each for each in distances if not (isinstance(each, IntImm) and each.value >= 0)]
        condition = reduce(And, [_is_apart(each, together) for each in open_ones]) if open_ones else None
    try:
        vectors = (*_vectors(loop, dict.fromkeys((most, few, min(few, _FEWEST)))),)
    except NotVector:
        return None
    return vectors if condition is None else (IfThenElse(condition, SeqStmt(vectors), SeqStmt((loop,))),)


def _passed(loop: For) -> Expr:
    """How far the variable of a loop gets from where it starts, in either direction; 0 if there is no iteration."""
    start, stop = loop.start, loop.stop
    apart = Sub(Max(stop, start), start) if loop.step > 0 else Sub(start, Min(start, stop))
    return folded(Max(apart, const(0, i64)))


def _skips_few(loop: For) -> bool:
    """Whether iterations go along rows of words with a stride small enough for shuffles."""
    nodes = [*accesses_in(loop.body)]
    are_words = all(each.buffer.dtype.bytes >= _WORD for each in nodes)
    rows = [each.indices for each in nodes if each.indices]
    go_along = all(moved_by(index, loop.var) == (index is row[-1]) for row in rows for index in row)
    return abs(loop.step) <= _MOST_SKIPPED and are_words and go_along


def _is_apart(distance: Expr, together: Expr) -> Expr:
    """Whether no two of so many iterations in a row meet against their order."""
    return Or(GE(distance, const(0, i64)), LE(distance, Neg(together)))


def _distances(loop: For, facts: Facts) -> list[Expr] | None:
    """After how many iterations elements are accessed again, later in the body; None if that is not constant."""
    found: list[Expr] = []
    written = {facts.definitions.root(stmt.buffer) for stmt in statements_of(loop.body, Store)}
    for each in facts.carried_by(loop, by_statement=True):
        nodes = [touch.node for touch in sorted((each.source, each.sink), key=_place)]
        first, second = (node if isinstance(node, Load | Store) else None for node in nodes)
        if first is None or second is None:
            return None
        distance = _distance(loop, first, second)
        loads = [] if distance is None else list(loads_in(distance))
        if distance is None or any(facts.definitions.root(node.buffer) in written for node in loads):
            return None
        if not any(are_equal((distance,), (other,)) for other in found):
            found.append(distance)
    return found


def _place(touch: Touch) -> tuple[int, bool]:
    """In which order accesses come: a statement loads before it stores."""
    return touch.position, isinstance(touch.node, Store)


def _distance(loop: For, first: Load | Store, second: Load | Store) -> Expr | None:
    """After how many iterations the second access reaches the element of the first; None if that is not constant."""
    if first.buffer is not second.buffer or not first.indices:
        return None
    if not are_equal(first.indices[:-1], second.indices[:-1]):
        return None
    ends = first.indices[-1], second.indices[-1]
    rows = [*walk(*first.indices[:-1])]
    inside = {stmt.var for stmt in loop.body.stmts if isinstance(stmt, Let)}
    if loop.var in rows or mentions((*ends, *first.indices), inside):
        return None
    if any(moved_by(end, loop.var) != 1 or end.dtype != i64 for end in ends):
        return None
    mine, its = (substitute(end, {loop.var: const(0, i64)}) for end in ends)
    if are_equal((mine,), (its,)):
        return const(0, i64)
    return folded(Sub(mine, its) if loop.step > 0 else Sub(its, mine))


def _vectors(loop: For, widths: Iterable[int]) -> Iterator[Stmt]:
    """Loops over vectors of these widths, from the widest on, and a scalar loop over the rest. Raises NotVector."""
    step, start, stop = const(loop.step, i64), loop.start, loop.stop
    passed = _passed(loop)
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
