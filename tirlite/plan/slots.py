"""Slots: stretches of storage that requests take whole, one after another. Slots in, a plan with one pool each out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from operator import attrgetter

from tirlite.plan.decision import Choice, Decision
from tirlite.plan.layout import Placement, Region
from tirlite.plan.plan import Plan
from tirlite.plan.pool import Pool
from tirlite.plan.problem import Problem
from tirlite.plan.request import Request
from tirlite.record import record
from tirlite.sizes import Size, maximum


@record(frozen=False)
class Slot:
    """The requests that take one stretch of storage in turn, the decision for each of them, and the pairs in place."""

    members: list[Request] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    pairs: list[tuple[str, str]] = field(default_factory=list)

    def take(self, request: Request, decision: Decision) -> None:
        self.members.append(request)
        self.decisions.append(decision)

    @property
    def size(self) -> Size:
        """Bytes: the maximum over the members."""
        if len(self.members) == 1:
            return self.members[0].size
        sizes = dict.fromkeys([request.size for request in self.members])
        return maximum(*sizes) if len(sizes) > 1 else next(iter(sizes))


_live = attrgetter("live")

Fill = Callable[[Sequence[Request]], list[Slot]]


def slot_plan(problem: Problem, strategy: str, fill: Fill) -> Plan:
    """The plan that `fill` makes of the requests of each memory, apart from those with a fixed offset.

    A slot is named after the request that lives in it first. A request that may live in several memories goes to the
    first one that it names.
    """
    placements: dict[str, Placement] = {}
    pools: dict[str, Region] = {}
    decisions: dict[str, Decision] = {}
    in_place: list[tuple[str, str]] = []
    for memory, (loose, fixed) in _by_memory(problem).items():
        pool = problem.memories[memory]
        for slot in fill(loose) if loose else ():
            name = min(slot.members, key=_live).id
            pools[name] = _region(pool, slot.members, slot.size)
            ids = [request.id for request in slot.members]
            placements |= dict.fromkeys(ids, Placement(name, 0))
            decisions |= zip(ids, slot.decisions, strict=True)
            in_place += slot.pairs
        if fixed:
            name = fixed[0][0].id
            members = [request for request, _ in fixed]
            pools[name] = _region(pool, members, maximum(*(offset + request.size for request, offset in fixed)))
            placements.update((request.id, Placement(name, offset)) for request, offset in fixed)
            decisions.update((request.id, Decision(Choice.FIXED)) for request in members)
    return Plan(problem, placements, pools, strategy, decisions, in_place=tuple(in_place))


def _by_memory(problem: Problem) -> dict[str, tuple[list[Request], list[tuple[Request, int]]]]:
    groups: dict[str, tuple[list[Request], list[tuple[Request, int]]]] = {}
    for request in problem.requests:
        memory = request.memories[0]
        if memory not in groups:
            groups[memory] = [], []
        loose, fixed = groups[memory]
        if request.fixed is None:
            loose.append(request)
        else:
            fixed.append((request, request.fixed))
    return groups


def _region(memory: Pool, members: Sequence[Request], size: Size) -> Region:
    return Region(memory.name, memory.scope, size, max(memory.align, *[request.align for request in members]))
