"""SplitReductions rewrites reductions into explicit partial results, so that the grouping stands in the IR."""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.analysis.definitions import Definitions
from tirlite.analysis.facts import Facts
from tirlite.analysis.reductions import AnyUpdate, PairUpdate, updates_in
from tirlite.ir import (
    GE,
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
from tirlite.rewrite.partials import partials_of
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


def _moves(update: AnyUpdate, loop: For) -> bool:
    """Whether iterations combine into different elements, or into one that is volatile."""
    inside = {loop.var, *(stmt.var for stmt in loop.body.stmts if isinstance(stmt, Let))}
    written = {stmt.buffer for stmt in loop.body.stmts if isinstance(stmt, Store)}
    for store in update.stores if isinstance(update, PairUpdate) else (update.store,):
        nodes = [node for index in store.indices for node in walk(index)]
        changes = any(node in inside or (isinstance(node, Load) and node.buffer in written) for node in nodes)
        if store.value.dtype.lanes > 1 or changes or store.buffer.volatile:
            return True
    return False


class _Split:
    """What one loop becomes."""

    def __init__(self, loop: For, updates: tuple[AnyUpdate, ...]) -> None:
        self.loop = loop
        width = max(stmt.buffer.dtype.bytes for stmt in loop.body.stmts if isinstance(stmt, Store))
        self.most = min(_MOST_LANES, _PARTIAL_BYTES // width)
        self.few = self.most // _PER_VECTOR
        self.partials = [partials_of(update, self.most) for update in updates]
        # The first of the stores that make an update is where it is made.
        self.replaced = {stmt: each for each in self.partials for stmt in each.replaced}

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
        for partial in self.partials:
            yield from partial.start()
        begin = self.loop.start
        for lanes in (self.most, self.few):
            end = last_whole(self.loop, count, lanes)
            yield self.over_vectors(lanes, begin, end)
            begin = end
        for partial in self.partials:
            yield from partial.combined()

    def over_vectors(self, lanes: int, begin: Expr, end: Expr) -> Stmt:
        """The loop from `begin` to `end`, so many iterations at a time."""
        at = Var(self.loop.var.name)
        vectors = Lanes(lanes, {self.loop.var: Ramp(at, const(1, i64), lanes)})
        body = SeqStmt(tuple(made for stmt in self.loop.body.stmts for made in self.statement(stmt, vectors)))
        return For(at, begin, end, body, step=lanes)

    def statement(self, stmt: Stmt, vectors: Lanes) -> Iterator[Stmt]:
        partial = self.replaced.get(stmt)
        if partial is None:
            yield vectors.statement(stmt)
        elif stmt is partial.replaced[0]:
            yield from partial.taken(vectors)
