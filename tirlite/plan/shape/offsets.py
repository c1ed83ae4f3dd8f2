"""A plan with symbolic offsets in, a function from the values of its dims to all offsets out."""

from __future__ import annotations

from collections.abc import Callable

from tirlite.plan.arguments import demand
from tirlite.plan.plan import Plan
from tirlite.plan.shape.formulas import Values, evaluator


def offset_evaluator(plan: Plan) -> Callable[[Values], Values]:
    """A function from the values of `plan.problem.dims`, in their order, to the offsets of the requests, in theirs.

    For who uses one plan at many bindings: `plan.at` makes a whole plan each time. Exact; some nanoseconds for each
    offset, and what offsets share is computed once.
    """
    demand("offset_evaluator", "plan", plan, "a Plan", fits=isinstance(plan, Plan))
    offsets = [plan.placements[request.id].offset for request in plan.problem.requests]
    return evaluator(offsets, plan.problem.dims)
