"""Finds what a function demands of the plan that is handed to it with each call."""

from __future__ import annotations

from collections.abc import Mapping

from tirlite.analysis.facts import Facts, of_facts
from tirlite.analysis.most_bytes import MostBytes
from tirlite.analysis.shape_plan import shape_plan
from tirlite.ir import Allocate, Buffer, IntImm, Var, View, statements
from tirlite.ir.shapes import least_alignment
from tirlite.plan import Conditions
from tirlite.record import record
from tirlite.sizes import Dim, Size, dims_of, maximum


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
