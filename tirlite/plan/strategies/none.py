"""Strategy `none` gives every request of one memory a slot of its own."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.plan.decision import Choice, Decision
from tirlite.plan.plan import Plan
from tirlite.plan.problem import Problem
from tirlite.plan.request import Request
from tirlite.plan.slots.slots import Slot, slot_plan


def none(problem: Problem) -> Plan:
    """A plan that shares nothing: what the program needs as it is written."""
    return slot_plan(problem, "none", _apart)


def _apart(requests: Sequence[Request]) -> list[Slot]:
    return [Slot([request], [Decision(Choice.ALONE)]) for request in requests]
