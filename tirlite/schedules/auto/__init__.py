"""What tirlite does with loops that nobody has scheduled: the same steps, chosen by rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tirlite.rewrite.pipeline import Pass
from tirlite.rewrite.pipelines import LOOPS
from tirlite.rewrite.vectorize_loops import VectorizeLoops
from tirlite.schedules.auto.candidates import has_chains, has_rows
from tirlite.schedules.auto.schedule_chains import ScheduleChains
from tirlite.schedules.auto.schedule_contractions import ScheduleContractions
from tirlite.schedules.auto.schedule_rows import ScheduleRows
from tirlite.target.processor import HOST

if TYPE_CHECKING:
    from tirlite.analysis.facts import Facts
    from tirlite.ir import PrimFunc
    from tirlite.schedules.auto.chosen import Chosen
    from tirlite.schedules.schedule import Schedule
    from tirlite.target import Target


def auto(target: Target) -> tuple[Pass, ...]:
    """What becomes of loops where no schedule says it, for a target."""
    return (ScheduleChains(target), ScheduleRows(target), ScheduleContractions(target), *_loops(target))


def _loops(target: Target) -> tuple[Pass, ...]:
    """What becomes of loops that no schedule is for, with the registers of a target."""
    if target.name == HOST:
        return LOOPS
    return tuple(replace(each, target=target.name) if isinstance(each, VectorizeLoops) else each for each in LOOPS)


def schedule_of(func: PrimFunc, given: object, target: Target) -> Schedule:
    """The schedule that `tl.compile` follows with this option."""
    from tirlite.schedules.schedule import Schedule

    if callable(given):
        return Schedule.by(given, func)
    if given is None or isinstance(given, tuple):
        return Schedule(func, given or ())
    from tirlite.analysis.facts import Facts
    from tirlite.rewrite.normalize import Normalize
    from tirlite.schedules.auto import chains, contraction_steps, rows
    from tirlite.schedules.auto.orders import orders
    from tirlite.schedules.auto.tiling import Tiling

    tiling = Tiling.of(target)
    chosen: list[Chosen] = []
    facts = Facts(Normalize()(func))
    if has_chains(facts.func):
        chosen.append(chains.scheduled(facts, target.processor))
        facts = _facts_of(chosen[-1].func, facts)
    if has_rows(facts.func):
        chosen.append(rows.scheduled(facts, tiling))
        facts = _facts_of(chosen[-1].func, facts)
    chosen.append(contraction_steps.scheduled(facts, tiling))
    steps = (step for each in chosen for step in each.steps)
    made = Schedule(func, (*steps, *_loops(target)))
    figures = (line for each in chosen for line in each.figures)
    made.notes = tuple(dict.fromkeys((*figures, *orders(made.func))))
    return made


def _facts_of(func: PrimFunc, known: Facts) -> Facts:
    from tirlite.analysis.facts import Facts

    return known if known.func is func else Facts(func)


__all__ = ["auto", "schedule_of"]
