"""Finds the plan that a function takes with each call, if it takes one.

Such a function has a last parameter, `plan: i64[k]`, and its body is wrapped in the attribute `disjoint` of it. An
entry of the plan is the bytes of an arena, which one Allocate declares with that extent, or the byte offset of a place
in one, where views are declared. The attribute lists the places that lie apart.
"""

from __future__ import annotations

from typing import cast

from tirlite.ir import AttrKey, AttrStmt, Buffer, Expr, IntImm, Load, PrimFunc, SeqStmt
from tirlite.ir.demand import of_prim_func
from tirlite.record import record


@record(eq=False)
class ShapePlan:
    """The parameter, the rows of entries whose places share no byte, and the body for which that holds."""

    buffer: Buffer
    rows: tuple[tuple[int, ...], ...]
    body: SeqStmt

    def entry(self, expr: Expr) -> int | None:
        """The number of the entry that `expr` is, or None for anything else."""
        if isinstance(expr, Load) and expr.buffer is self.buffer and isinstance(expr.indices[0], IntImm):
            return expr.indices[0].value
        return None

    def arena(self, buffer: Buffer) -> int | None:
        """The number of the entry that is the size of `buffer`, if it is an arena."""
        return self.entry(buffer.shape[0]) if len(buffer.shape) == 1 and buffer.dtype.bytes == 1 else None


@of_prim_func
def shape_plan(func: PrimFunc) -> ShapePlan | None:
    """The plan that `func` takes with each call, if it does."""
    stmts = func.body.stmts
    if len(stmts) != 1 or not func.params:
        return None
    (outer,), last = stmts, func.params[-1]
    if not isinstance(outer, AttrStmt) or outer.key is not AttrKey.DISJOINT or outer.buffer is not last:
        return None
    assert isinstance(last, Buffer)
    return ShapePlan(last, cast("tuple[tuple[int, ...], ...]", outer.value), outer.body)
