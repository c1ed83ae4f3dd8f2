"""ScheduleContractions looks for nests of three loops before anything is loaded that schedules products of matrices."""

from __future__ import annotations

from dataclasses import field

from tirlite.analysis.facts import Facts
from tirlite.ir import For, PrimFunc, Store, statements_of
from tirlite.record import record
from tirlite.rewrite.pipeline import FactsPass
from tirlite.target import Target


@record
class ScheduleContractions(FactsPass):
    """Nests that combine what depends on other loops each: by tiles of registers, over packed panels.

    `contraction_steps.steps` says what is done, and when, by what `target` has. For functions in normal form (see
    `Normalize`).
    """

    target: Target = field(default_factory=Target.host)
    name: str = "schedule-contractions"

    def rewritten(self, facts: Facts) -> PrimFunc:
        if not any(map(_is_nest, statements_of(facts.func.body, For))):
            return facts.func
        from tirlite.schedules.auto.contraction_steps import scheduled
        from tirlite.schedules.auto.tiling import Tiling

        return scheduled(facts, Tiling.of(self.target)).func


def _is_nest(loop: For) -> bool:
    """Whether loops stand one inside of the other around an update, two of them at least in this one."""
    depth, body = 0, loop.body
    while inner := next((stmt for stmt in reversed(body.stmts) if isinstance(stmt, For)), None):
        depth, body = depth + 1, inner.body
    return depth >= 2 and bool(body.stmts) and isinstance(body.stmts[-1], Store)
