"""CheckRaces leaves a function as it is, or raises the error that two iterations of a parallel loop conflict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tirlite.analysis.facts import Facts
from tirlite.diag import KernelError
from tirlite.ir import For, ForKind, PrimFunc, statements_of
from tirlite.ir.faults import IterationConflict
from tirlite.record import record
from tirlite.rewrite.pipeline import FactsPass

if TYPE_CHECKING:
    from tirlite.analysis.trials.races import Race

_DECLARE = "the iterations combine values: declare it by `tl.reduce` in place of `tl.parallel`, and workers share them"


class ParallelRace(IterationConflict):
    """Two iterations of a parallel loop touch one element at whatever arguments, and one of them writes it.

    Example: `total[0] += x[i]` in `for i in tl.parallel(n):`.
    Fix: Where iterations combine values, declare it by `tl.reduce`. Else make the loop serial with `range`, or let each
    iteration write an element of its own.
    """

    code = "parallel-race"
    raises = KernelError
    title = IterationConflict.title + "{sizes}"
    help = "{advice}"

    sizes: str = ""
    advice: str = IterationConflict.help


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
            from tirlite.analysis.trials.races import find_race  # and what tries programs at points

            race = find_race(facts)
            if race is not None:
                from tirlite.analysis.regrouping import updates_in

                updates = updates_in(race.loop, facts)
                combines = isinstance(updates, tuple) and bool(updates)
                raise _message(race, _DECLARE if combines else IterationConflict.help).error()
        return facts.func


def _message(race: Race, advice: str) -> ParallelRace:
    first, second = race.first, race.second
    at = ", ".join(f"{name} = {value}" for name, value in race.sizes)
    return ParallelRace(
        first.element,
        race.loop.var.name,
        "written",
        first.iteration,
        "written" if second.is_write else "read",
        second.iteration,
        f"; for example at {at}" if at else "",
        advice,
        span=first.span,
        related=None if second.span == first.span else second.span,
    )
