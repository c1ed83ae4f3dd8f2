"""Builds a plan: strategies add pools with their requests to a draft, memory by memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from itertools import repeat

from tirlite.plan.layout import Choice, Decision, Layout, Placement, PlannedPool
from tirlite.plan.plan import Plan
from tirlite.plan.problem import Problem
from tirlite.plan.request import Pool, Request
from tirlite.record import record, replace
from tirlite.sizes import Size, maximum


@record(frozen=False)
class Draft:
    """A plan under construction. Adding a request again replaces its placement."""

    problem: Problem
    placements: dict[str, Placement] = field(default_factory=dict)
    pools: dict[str, PlannedPool] = field(default_factory=dict)
    decisions: dict[str, Decision] = field(default_factory=dict)
    in_place: list[tuple[str, str]] = field(default_factory=list)

    @classmethod
    def without(cls, plan: Layout, memories: Collection[str]) -> Draft:
        """The draft of a plan, without the pools in some memories."""
        pools = {name: region for name, region in plan.pools.items() if region.memory not in memories}
        return cls(plan.problem, dict(plan.placements), pools, dict(plan.decisions), [*plan.in_place])

    def put(
        self,
        name: str,
        memory: Pool,
        size: Size,
        offsets: Mapping[str, Size],
        decisions: Iterable[Decision],
        align: int = 1,
    ) -> None:
        """Adds a pool with requests at these offsets; it is aligned to `align` at least."""
        aligns = [self.problem.by_id[each].align for each in offsets]
        self.pools[name] = PlannedPool(memory.name, memory.scope, size, max(memory.align, align, *aligns))
        self.placements |= {each: Placement(name, offset) for each, offset in offsets.items()}
        self.decisions.update(zip(offsets, decisions, strict=False))

    def put_fixed(self, name: str, memory: Pool, requests: Sequence[Request]) -> None:
        """Adds a pool with requests that have fixed offsets."""
        offsets: dict[str, Size] = {request.id: request.fixed or 0 for request in requests}
        size = maximum(*(offsets[request.id] + request.size for request in requests))
        self.put(name, memory, size, offsets, repeat(Decision(Choice.FIXED)))

    def put_arena(
        self, memory: Pool, size: Size, offsets: Mapping[str, Size], in_place: Iterable[tuple[str, str]] | None = None
    ) -> None:
        """Adds a pool named after its memory, with a prime if a request or another pool has that name.

        `in_place` are its pairs; with None, the draft keeps those that it has.
        """
        name = memory.name
        while name in self.problem.by_id or name in self.pools:
            name += "'"
        if in_place is not None:
            self.in_place = [*(pair for pair in self.in_place if pair[0] not in offsets), *in_place]
        taken = {destination for destination, _ in self.in_place}
        self.put(name, memory, size, offsets, [_decision(self.problem.by_id[each], taken) for each in offsets])

    def onto(self, plan: Plan) -> Plan:
        """The plan with the placements, pools and pairs of the draft."""
        pairs = tuple(self.in_place)
        return replace(plan, placements=self.placements, pools=self.pools, decisions=self.decisions, in_place=pairs)

    def plan(self, strategy: str) -> Plan:
        """The draft as a plan of this strategy."""
        pairs = tuple(self.in_place)
        return Plan(self.problem, self.placements, self.pools, strategy, self.decisions, in_place=pairs)


def _decision(request: Request, taken: Collection[str]) -> Decision:
    if request.id in taken:
        return Decision(Choice.IN_PLACE)
    return Decision(Choice.PACKED if request.fixed is None else Choice.FIXED)
