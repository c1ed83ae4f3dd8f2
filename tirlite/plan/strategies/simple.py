"""Strategies that take one look at each request: `none`, `coalesce` and `group`.

Sources: `coalesce` is StorageCoalesce of TVM's Relay VM, which sums the sizes of a block's storages, each rounded up to
its alignment; `group` is the memory planner of PyTorch's static runtime.
"""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.plan.layout import Choice, Decision
from tirlite.plan.plan import Plan
from tirlite.plan.problem import Problem
from tirlite.plan.request import Request
from tirlite.plan.strategies.slots import Slot, slot_plan, stacked_plan
from tirlite.sizes import Proof, Size, maximum, prove_le


def none(problem: Problem) -> Plan:
    """A plan that shares nothing: what the program needs as it is written."""
    return slot_plan(problem, "none", _own_slots)


def _own_slots(requests: Sequence[Request]) -> list[Slot]:
    return [Slot([request], [Decision(Choice.ALONE)]) for request in requests]


def coalesce(problem: Problem) -> Plan:
    """A plan that shares nothing and allocates once for each region."""
    return stacked_plan(problem, "coalesce", _own_slots, align=1, kind=lambda request: request.kind)


_ALIGN = 64


def group(problem: Problem) -> Plan:
    """A plan with one buffer for each memory; a group is as large as the largest in it, rounded up to 64 bytes.

    Sizes have no say in who joins which group, so that a plan for other sizes of the same lifetimes has the same
    groups. A lifetime with gaps counts from its begin to its end.
    """
    return stacked_plan(problem, "group", groups, align=_ALIGN, kind=lambda request: "")


def groups(requests: Sequence[Request]) -> list[Slot]:
    """The groups in the order in which they are opened. Of those freed at one time the last request's is the last."""
    order = sorted(range(len(requests)), key=lambda number: (requests[number].live[0][0], number))
    ends = sorted(range(len(requests)), key=lambda number: (requests[number].live[-1][1], number))
    of: dict[int, int] = {}
    opened: list[Slot] = []
    sizes: list[Size] = []
    free: list[int] = []
    ended = 0
    for number in order:
        request = requests[number]
        while requests[ends[ended]].live[-1][1] <= request.live[0][0]:
            free.append(of[ends[ended]])
            ended += 1
        if free:
            place = free.pop()
            opened[place].take(request, _joining(request.size, sizes[place]))
            sizes[place] = maximum(sizes[place], request.size)
        else:
            place = len(opened)
            opened.append(Slot([request], [Decision(Choice.OPENS)]))
            sizes.append(request.size)
        of[number] = place
    return opened


def _joining(size: Size, room: Size) -> Decision:
    if size == room:
        return Decision(Choice.SAME)
    return Decision(Choice.ROOM if prove_le(size, room) is Proof.YES else Choice.GROWS, room)
