"""Parallel hands the iterations of a loop to workers."""

from __future__ import annotations

from tirlite.analysis.facts import Facts
from tirlite.ir import ForKind, PrimFunc
from tirlite.record import record
from tirlite.rewrite.pipeline import FactsPass
from tirlite.schedules.handle import LoopName, handle_of, loop_named
from tirlite.schedules.step import demand_any_order, demand_independent, does_not_fit, with_loop


@record
class Parallel(FactsPass):
    """A loop whose iterations may run at once. Refused where one may touch what another one writes."""

    loop: LoopName
    name: str = "parallel"

    def __str__(self) -> str:
        return f"s.parallel({handle_of(self.loop)})"

    def rewritten(self, facts: Facts) -> PrimFunc:
        loop = loop_named(facts.func, self.loop)
        if loop.kind not in (ForKind.SERIAL, ForKind.PARALLEL):
            raise does_not_fit(self, f"the loop over `{loop.var.name}` is no `range`")
        demand_any_order(self, loop)
        demand_independent(self, facts, loop)
        return with_loop(facts, loop, (loop.replaced(kind=ForKind.PARALLEL),))
