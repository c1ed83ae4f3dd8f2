"""Writes reductions that load from wherever indices in memory say as one loop over vectors, of which lanes may be off.

Rows of sparse matrices are short and differ in length: how often one loop runs is one guess of the processor's for each
row, and the fewer lanes a gather has, the less it takes, on or off. In a row of many terms gathers take longer than the
sum does, so that one sum in work serves as well as four.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tirlite.analysis.loops.reductions import AnyUpdate, Update
from tirlite.ir.dtype import i64
from tirlite.ir.expr import LT, Load, Min, Sub, Var, const
from tirlite.ir.node import Node
from tirlite.ir.stmt import For, IfThenElse, Let, SeqStmt, Stmt, Store
from tirlite.ir.walk import mentions, statements, walk
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.vectors.lane_partials import LanePartials, Rest
from tirlite.rewrite.vectors.lanes import first_lanes

_LANES = 8
# The bytes of elements that are gathered by an instruction.
_GATHERED = (4, 8)


def gathers(loop: For, updates: Sequence[AnyUpdate]) -> bool:
    """Whether all that iterations load are words, some of them from wherever others say."""
    stmts = [*statements(loop.body)]
    if not all(isinstance(stmt, Let | Store) for stmt in stmts) or not all(
        isinstance(each, Update) for each in updates
    ):
        return False
    moving: set[Node] = {loop.var}  # what differs from iteration to iteration
    loaded: set[Node] = set()  # and what of it was loaded
    is_any = False
    for stmt in stmts:
        assert isinstance(stmt, Let | Store)
        loads = [node for node in walk(stmt.value) if isinstance(node, Load) and mentions(node, moving)]
        if any(load.buffer.dtype.scalar.bytes not in _GATHERED for load in loads):
            return False
        loaded.update(loads)
        is_any = is_any or any(mentions(index, loaded) for load in loads for index in load.indices)
        if isinstance(stmt, Let):
            moving |= {stmt.var} if mentions(stmt.value, moving) else set()
            loaded |= {stmt.var} if mentions(stmt.value, loaded) else set()
    return is_any


def gathered(loop: For, updates: Sequence[AnyUpdate], is_inside: Callable[[Load], bool]) -> Iterator[Stmt]:
    """What becomes of such a loop. Raises NotVector."""
    partials = [LanePartials(update, _LANES) for update in updates]
    at = Var(loop.var.name)
    vectors = Rest(loop.var, at, partials, is_inside, _LANES)
    on = first_lanes(folded(Min(Sub(loop.stop, at), const(_LANES, i64))), _LANES, _width(updates))
    vectors.on = Var("left", on.dtype)
    body = SeqStmt((Let(vectors.on, on, span=loop.span), *vectors.block(loop.body).stmts))
    stmts: list[Stmt] = []
    for each in partials:
        stmts += each.start()
    stmts.append(For(at, loop.start, loop.stop, body, step=_LANES))
    for each in partials:
        stmts += (*each.halved(1), *each.ended(const(0, i64)))
    if all(update.store.buffer.scope == "local" for update in updates if isinstance(update, Update)):
        # Where there is no iteration, what is combined changes nothing: no guess is needed.
        yield from stmts
    else:
        yield IfThenElse(LT(loop.start, loop.stop), SeqStmt((*stmts,)), span=loop.span)


def _width(updates: Sequence[AnyUpdate]) -> int:
    return max(store.buffer.dtype.bytes for update in updates for store in update.stores)
