"""ScheduleContractions looks for reductions before anything is loaded that schedules products of matrices."""

from __future__ import annotations

from dataclasses import field

from tirlite.analysis.facts import Facts
from tirlite.ir import For, ForKind, PrimFunc, statements_of
from tirlite.record import record
from tirlite.rewrite.pipeline import FactsPass
from tirlite.target import Target


@record
class ScheduleContractions(FactsPass):
    """Nests that combine over `tl.reduce` what depends on other loops each: by tiles of registers, over packed panels.

    `contraction.steps` says what is done, and when, by what `target` has. For functions in normal form (see
    `Normalize`).
    """

    target: Target = field(default_factory=Target.host)
    name: str = "schedule-contractions"

    def rewritten(self, facts: Facts) -> PrimFunc:
        # Two loops around a reduction, at least.
        reductions = any(loop.kind is ForKind.REDUCE for loop in statements_of(facts.func.body, For))
        if not reductions:
            return facts.func
        from tirlite.schedules.auto.contraction import Tiling, scheduled

        return scheduled(facts, Tiling.of(self.target.processor))[0]
