"""ScheduleRows looks for loops whose iterations go through several loops before anything else is loaded."""

from __future__ import annotations

from dataclasses import field

from tirlite.analysis.facts import Facts
from tirlite.ir import PrimFunc
from tirlite.record import record
from tirlite.rewrite.pipeline import FactsPass
from tirlite.schedules.auto.candidates import has_rows
from tirlite.target import Target


@record
class ScheduleRows(FactsPass):
    """Loops over rows that go through several loops each: rows by blocks, where what these read is the same for all.

    `rows.scheduled` says what is done, and when, by what `target` has. For functions in normal form (see `Normalize`).
    """

    target: Target = field(default_factory=Target.host)
    name: str = "schedule-rows"

    def rewritten(self, facts: Facts) -> PrimFunc:
        if not has_rows(facts.func):
            return facts.func
        from tirlite.schedules.auto.rows import scheduled
        from tirlite.schedules.auto.tiling import Tiling

        return scheduled(facts, Tiling.of(self.target)).func
