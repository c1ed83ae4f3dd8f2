"""A function in, the same with vectorized loops of constant length as statements on vectors out."""

from __future__ import annotations

from tirlite.ir import For, ForKind, IntImm, Let, PrimFunc, Ramp, Stmt, Store, const, i64, rewrite
from tirlite.ir.demand import pass_call
from tirlite.record import record
from tirlite.rewrite.lanes import Lanes, NotVector

# The most lanes of a vector.
_MOST_LANES = 64


@record
class VectorizeLoops:
    """Writes `tl.vectorized` loops with constant bounds with Ramp and Broadcast: all iterations at once.

    Their iterations have no order, so each statement may be done for all of them before the next one. Left alone, for
    LLVM to do what it can, are loops with symbolic bounds or more than 64 iterations, with other statements than stores
    and lets, and with what has no vector form: an index along an axis that is not the last, a conditional expression,
    a call.
    """

    name: str = "vectorize-loops"

    @pass_call
    def __call__(self, func: PrimFunc) -> PrimFunc:
        result = rewrite(func, {For: _vectorized})
        assert isinstance(result, PrimFunc)
        return result


def _vectorized(loop: For) -> Stmt | tuple[Stmt, ...]:
    if loop.kind is not ForKind.VECTORIZED:
        return loop
    if not (isinstance(loop.start, IntImm) and isinstance(loop.stop, IntImm)):
        return loop
    lanes = len(range(loop.start.value, loop.stop.value, loop.step))
    if not 2 <= lanes <= _MOST_LANES or not all(isinstance(stmt, Store | Let) for stmt in loop.body.stmts):
        return loop
    vectors = Lanes(lanes, {loop.var: Ramp(loop.start, const(loop.step, i64), lanes)})
    try:
        return tuple(vectors.statement(stmt) for stmt in loop.body.stmts)
    except NotVector:
        return loop
