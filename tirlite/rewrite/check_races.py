"""CheckRaces leaves a function as it is, or raises the error that two iterations of a parallel loop conflict."""

from __future__ import annotations

from tirlite.analysis.facts import Facts
from tirlite.ir import For, ForKind, PrimFunc, statements_of
from tirlite.record import record
from tirlite.rewrite.pipeline import FactsPass


@record
class CheckRaces(FactsPass):
    """Refuses a function in normal form in whose parallel loops two iterations are seen to conflict.

    What cannot be decided passes: the interpreter finds it. Two writes of the same value are a conflict too. Raises
    KernelError with both places, and two iterations that meet.
    """

    name: str = "check-races"

    def rewritten(self, facts: Facts) -> PrimFunc:
        parallel = (loop for loop in statements_of(facts.func.body, For) if loop.kind is ForKind.PARALLEL)
        if not all(map(facts.is_independent, parallel)):
            from tirlite.rewrite.parallel_race import demand_no_race  # and what tries programs at points

            demand_no_race(facts)
        return facts.func
