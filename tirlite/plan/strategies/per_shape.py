"""Strategy `per_shape` makes a plan for a problem that has one shape alone."""

from __future__ import annotations

from dataclasses import replace

from tirlite.diag import Message, PlanError
from tirlite.plan.plan import Plan
from tirlite.plan.problem import Problem
from tirlite.plan.strategies.auto import auto


class ManyShapes(Message):
    """Strategy `per_shape` plans for one shape at a time, and sizes depend on dims without a value.

    Example: `plan.solve(problem, "per_shape")` of a problem with sizes over `n`.
    Fix: Ask `plan.PerShape(problem).plan_at({n: 4})`, or on the command line give values, `--bind n=4`.
    """

    code = "many-shapes"
    raises = PlanError
    title = "strategy `per_shape` makes a plan for each value of {dims}, and is given none"
    help = "ask `plan.PerShape(problem).plan_at(...)`, or give values with `--bind`"

    dims: str


def per_shape(problem: Problem) -> Plan:
    """The plan of `auto` for constant sizes. Raises PlanError where sizes depend on dims: see `plan.PerShape`."""
    if problem.dims:
        raise ManyShapes(", ".join(f"`{dim.name}`" for dim in problem.dims)).error()
    return replace(auto(problem), strategy="per_shape")
