"""ForLarge says which steps are taken in their place for calls with large arrays."""

from __future__ import annotations

from tirlite.analysis.facts import Facts
from tirlite.ir import PrimFunc
from tirlite.record import record
from tirlite.rewrite.pipeline import FactsPass, Pass, Rewritten


@record
class ForLarge(FactsPass):
    """Leaves calls whose arrays take `least` bytes or more in all to a version that takes `steps` instead.

    It changes nothing by itself. In a version that serves all sizes it does not count.
    """

    least: int
    steps: tuple[Pass, ...]

    def rewritten(self, facts: Facts) -> PrimFunc:
        return facts.func

    def on(self, facts: Facts) -> Rewritten:
        return Rewritten(facts.func, facts=facts, large_from=self.least)


def versions(steps: tuple[Pass, ...]) -> list[tuple[Pass, ...]]:
    """The steps for usual calls, and those in their place for large arrays if there are such."""
    large = [each for each in steps if isinstance(each, ForLarge)]
    return [tuple(each for each in steps if each not in large), *(each.steps for each in large)]
