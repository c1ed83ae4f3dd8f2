"""ScheduleContractions looks for reductions before anything is loaded that schedules products of matrices."""

from __future__ import annotations

from tirlite.analysis.facts import Facts
from tirlite.ir import For, ForKind, PrimFunc, statements_of
from tirlite.record import record
from tirlite.rewrite.pipeline import FactsPass


@record
class ScheduleContractions(FactsPass):
    """Nests that combine over `tl.reduce` what depends on other loops each: by tiles of registers, over packed panels.

    `contraction.steps` says what is done, and when. For functions in normal form (see `Normalize`).
    """

    name: str = "schedule-contractions"

    def rewritten(self, facts: Facts) -> PrimFunc:
        # Two loops around a reduction, at least.
        reductions = any(loop.kind is ForKind.REDUCE for loop in statements_of(facts.func.body, For))
        if not reductions:
            return facts.func
        from tirlite.schedules.auto.contraction import scheduled

        return scheduled(facts)[0]
