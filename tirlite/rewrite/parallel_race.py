"""A function with parallel loops in; the error that two iterations of one conflict, if they are seen to."""

from __future__ import annotations

from tirlite.analysis.facts import Facts
from tirlite.analysis.trials.races import Race, find_race
from tirlite.diag import KernelError
from tirlite.ir.faults import IterationConflict


class ParallelRace(IterationConflict):
    """Two iterations of a parallel loop touch one element at whatever arguments, and one of them writes it.

    Example: `total[0] += x[i]` in `for i in tl.parallel(n):`.
    Fix: Make the loop serial with `range`, or let each iteration write an element of its own.
    """

    code = "parallel-race"
    raises = KernelError
    title = IterationConflict.title + "{sizes}"

    sizes: str = ""


def demand_no_race(facts: Facts) -> None:
    """Raises KernelError where two iterations are seen to conflict."""
    race = find_race(facts)
    if race is not None:
        raise _message(race).error()


def _message(race: Race) -> ParallelRace:
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
        span=first.span,
        related=None if second.span == first.span else second.span,
    )
