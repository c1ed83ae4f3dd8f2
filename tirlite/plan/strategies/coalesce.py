"""Strategy `coalesce` plans a region for each memory and element type; nothing overlaps.

Source: StorageCoalesce of TVM's Relay VM, which sums the sizes of a block's storages, each rounded up to its alignment.
"""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.plan.decision import Choice, Decision
from tirlite.plan.plan import Plan
from tirlite.plan.problem import Problem
from tirlite.plan.request import Request
from tirlite.plan.slots.slots import Slot, stacked_plan


def coalesce(problem: Problem) -> Plan:
    """A plan that shares nothing and allocates once for each region."""
    return stacked_plan(problem, "coalesce", _apart, align=1, kind=lambda request: request.kind)


def _apart(requests: Sequence[Request]) -> list[Slot]:
    return [Slot([request], [Decision(Choice.ALONE)]) for request in requests]
