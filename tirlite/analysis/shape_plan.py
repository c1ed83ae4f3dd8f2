"""Finds the plan that a function receives with each call, if any, and the conditions that the plan must satisfy.

Such a function has a last parameter, `plan: i64[k]`, and its body is wrapped in the attribute `disjoint` of it. An
entry of the plan is the bytes of an arena, which one Allocate declares with that extent, or the byte offset of a place
in one, where views are declared. The attribute lists the places that lie apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from tirlite.analysis.facts import Facts, of_facts
from tirlite.ir import Allocate, AttrKey, AttrStmt, Buffer, Expr, IntImm, Load, PrimFunc, SeqStmt, Var, View, statements
from tirlite.ir.demand import of_prim_func
from tirlite.ir.shapes import least_alignment
from tirlite.record import record

if TYPE_CHECKING:
    from tirlite.plan import Conditions
    from tirlite.sizes import Dim, Size


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


@record
class PlanDemands:
    """What every plan must keep, and the bytes of the places, by entry, over dims that stand for variables."""

    conditions: Conditions
    sizes: tuple[Size, ...]
    variables: Mapping[Dim, Var]


@of_facts
def plan_demands(facts: Facts) -> PlanDemands | None:
    """What a function demands of its plan, told by its statements alone; None where it takes none.

    Bytes that differ from iteration to iteration count as the most that they can be; those without a bound are those
    of no view that a storage rewrite makes, and count as none.
    """
    plan = shape_plan(facts.func)
    if plan is None:
        return None
    from tirlite.analysis.most_bytes import MostBytes
    from tirlite.plan import Conditions
    from tirlite.sizes import dims_of, maximum

    most = MostBytes(facts)
    count = plan.buffer.shape[0]
    assert isinstance(count, IntImm)
    arenas, aligns = [-1] * count.value, [1] * count.value
    sizes: list[Size] = [0] * count.value
    homes: dict[Buffer, int] = {}
    for stmt in statements(plan.body):
        if isinstance(stmt, Allocate) and (arena := plan.arena(stmt.buffer)) is not None:
            homes[stmt.buffer] = arena
        elif isinstance(stmt, View) and stmt.source in homes and (entry := plan.entry(stmt.byte_offset)) is not None:
            arenas[entry] = homes[stmt.source]
            aligns[entry] = max(aligns[entry], least_alignment(stmt.buffer))
            sizes[entry] = maximum(sizes[entry], most.of(stmt.buffer) or 0)
    dims = dict.fromkeys(dim for size in sizes for dim in dims_of(size))
    conditions = Conditions(tuple(arenas), tuple(aligns), plan.rows)
    return PlanDemands(conditions, tuple(sizes), {dim: facts.extents.variables[dim] for dim in dims})
