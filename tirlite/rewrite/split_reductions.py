"""SplitReductions rewrites reductions into explicit partial results, so that the grouping stands in the IR."""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.analysis.definitions import Definitions
from tirlite.analysis.facts import Facts
from tirlite.analysis.reductions import Update, neutral, updates_in
from tirlite.ir import (
    GE,
    Allocate,
    Broadcast,
    Buffer,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    Let,
    Load,
    PrimFunc,
    Ramp,
    SeqStmt,
    Stmt,
    Store,
    Var,
    const,
    i64,
    rewrite,
    statements_of,
    walk,
)
from tirlite.record import record
from tirlite.rewrite.lanes import Lanes, NotVector, iterations, last_whole
from tirlite.rewrite.normalize import Normalize
from tirlite.rewrite.pipeline import FactsPass

# The partial results of one sum fill four vectors of 512 bits, or more that are narrower, on every machine alike: the
# grouping, and so the last bit of a sum, is the same wherever the kernel runs.
_PARTIAL_BYTES = 256
_MOST_LANES = 64
# A loop over vectors of a quarter of that goes over what is left.
_PER_VECTOR = 4


@record
class SplitReductions(FactsPass):
    """Writes `tl.reduce` loops as serial ones: those that combine over neighbours in memory by vectors.

    A loop that combines values into elements that stay the same throughout becomes a loop over vectors of partial
    results, which are combined pairwise at its end; the last few iterations follow in order. Loops with other
    statements than stores and lets, of other steps than 1, or with what has no vector form go on in order as they are
    written. For functions in normal form (see `Normalize`) that `CheckReductions` lets pass; the result is in it too.
    """

    name: str = "split-reductions"

    def rewritten(self, facts: Facts) -> PrimFunc:
        func = facts.func
        if not any(loop.kind is ForKind.REDUCE for loop in statements_of(func.body, For)):
            return func
        result = rewrite(func, {For: lambda loop: _split(loop, facts.definitions)})
        assert isinstance(result, PrimFunc)
        # The statements stand there once for each length of vectors.
        return Normalize()(result)


def _split(loop: For, definitions: Definitions) -> Stmt | tuple[Stmt, ...]:
    if loop.kind is not ForKind.REDUCE:
        return loop
    serial = loop.replaced(kind=ForKind.SERIAL)
    if loop.step != 1 or not all(isinstance(stmt, Store | Let) for stmt in loop.body.stmts):
        return serial
    updates = updates_in(loop, definitions)
    if not isinstance(updates, tuple) or not updates or any(_moves(update, loop) for update in updates):
        return serial
    try:
        return (*_Split(loop, updates).statements(),)
    except NotVector:
        return serial


def _moves(update: Update, loop: For) -> bool:
    """Whether iterations combine into different elements, or into one that is volatile."""
    inside = {loop.var, *(stmt.var for stmt in loop.body.stmts if isinstance(stmt, Let))}
    written = {stmt.buffer for stmt in loop.body.stmts if isinstance(stmt, Store)}
    nodes = [node for index in update.store.indices for node in walk(index)]
    is_vector = update.store.value.dtype.lanes > 1
    changes = any(node in inside or (isinstance(node, Load) and node.buffer in written) for node in nodes)
    return is_vector or changes or update.store.buffer.volatile


class _Split:
    """What one loop becomes."""

    def __init__(self, loop: For, updates: tuple[Update, ...]) -> None:
        self.loop = loop
        width = max(update.store.buffer.dtype.bytes for update in updates)
        self.most = min(_MOST_LANES, _PARTIAL_BYTES // width)
        self.few = self.most // _PER_VECTOR
        self.partials = {
            update: Buffer("partial", update.store.buffer.dtype, (const(self.most, i64),), "local")
            for update in updates
        }
        self.by_store = {update.store: update for update in updates}

    def statements(self) -> Iterator[Stmt]:
        """The loops over vectors, and the serial one over the rest. Raises NotVector."""
        loop = self.loop
        count = iterations(loop)
        if not isinstance(count, IntImm | Var):
            var = Var("count")
            yield Let(var, count, span=loop.span)
            count = var
        whole = last_whole(loop, count, self.few)
        vectors = SeqStmt((*self.vectors(count),))
        yield from (
            vectors.stmts if isinstance(count, IntImm) else [IfThenElse(GE(count, const(self.few, i64)), vectors)]
        )
        yield loop.replaced(kind=ForKind.SERIAL, start=whole)

    def vectors(self, count: Expr) -> Iterator[Stmt]:
        if isinstance(count, IntImm) and count.value < self.few:
            return
        for update, partial in self.partials.items():
            yield Allocate(partial)
            start = neutral(update.operation, partial.dtype)
            yield Store(partial, (_lanes(0, self.most),), Broadcast(start, self.most))
        begin = self.loop.start
        for lanes in (self.most, self.few):
            end = last_whole(self.loop, count, lanes)
            yield self.over_vectors(lanes, begin, end)
            begin = end
        for update, partial in self.partials.items():
            yield from _combined(update, partial, self.most)

    def over_vectors(self, lanes: int, begin: Expr, end: Expr) -> Stmt:
        """The loop from `begin` to `end`, so many iterations at a time."""
        at = Var(self.loop.var.name)
        vectors = Lanes(lanes, {self.loop.var: Ramp(at, const(1, i64), lanes)})
        body = SeqStmt(tuple(self.statement(stmt, vectors) for stmt in self.loop.body.stmts))
        return For(at, begin, end, body, step=lanes)

    def statement(self, stmt: Stmt, vectors: Lanes) -> Stmt:
        if isinstance(stmt, Store) and (update := self.by_store.get(stmt)) is not None:
            partial, lanes = self.partials[update], _lanes(0, vectors.lanes)
            operand = vectors.spread(vectors.of(update.operand))
            return Store(partial, (lanes,), update.operation(partial[lanes], operand), span=stmt.span)
        return vectors.statement(stmt)


def _combined(update: Update, partial: Buffer, lanes: int) -> Iterator[Stmt]:
    """The partial results combined by halves, and then with what was there before the loop."""
    operation, store = update.operation, update.store
    while lanes > 2:
        lanes //= 2
        low, high = _lanes(0, lanes), _lanes(lanes, lanes)
        yield Store(partial, (low,), operation(partial[low], partial[high]))
    whole = operation(partial[const(0, i64)], partial[const(1, i64)])
    yield Store(store.buffer, store.indices, operation(update.element, whole), span=store.span)


def _lanes(start: int, lanes: int) -> Ramp:
    return Ramp(const(start, i64), const(1, i64), lanes)
