"""ScheduleChains looks for temporaries that one nest fills and another one reads before anything else is loaded."""

from __future__ import annotations

from dataclasses import field

from tirlite.analysis.facts import Facts
from tirlite.ir import PrimFunc
from tirlite.record import record
from tirlite.rewrite.pipeline import FactsPass
from tirlite.schedules.auto.candidates import has_chains
from tirlite.target import Target


@record
class ScheduleChains(FactsPass):
    """Nests that fill temporaries, inside of tiles of the nests that read them: so a tile of them stays in the cache.

    `chains.scheduled` says what is done, and when. For functions in normal form (see `Normalize`).
    """

    target: Target = field(default_factory=Target.host)
    name: str = "schedule-chains"

    def rewritten(self, facts: Facts) -> PrimFunc:
        if not has_chains(facts.func):
            return facts.func
        from tirlite.schedules.auto.chains import scheduled

        return scheduled(facts, self.target.processor).func
