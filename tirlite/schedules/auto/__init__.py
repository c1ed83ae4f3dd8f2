"""What tirlite does with loops that nobody has scheduled: the same steps, chosen by rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tirlite.rewrite.find_reductions import FindReductions
from tirlite.rewrite.options import Form
from tirlite.rewrite.pipeline import Pass
from tirlite.rewrite.pipelines import LOOPS
from tirlite.rewrite.vectorize_loops import VectorizeLoops
from tirlite.schedules.auto.rules import ScheduleChains, ScheduleContractions, ScheduleRows, ScheduleStencils
from tirlite.target.processor import HOST

if TYPE_CHECKING:
    from tirlite.ir import PrimFunc
    from tirlite.schedules.schedule import Schedule
    from tirlite.target import Target


def auto(target: Target, form: Form = Form.USUAL) -> tuple[Pass, ...]:
    """What becomes of loops where no schedule says it, for a target, in a version of this form."""
    return (*_rules(target, form), *_loops(target))


def _rules(target: Target, form: Form) -> tuple[ScheduleStencils, ScheduleChains, ScheduleRows, ScheduleContractions]:
    return (
        ScheduleStencils(target),
        ScheduleChains(target, form),
        ScheduleRows(target),
        ScheduleContractions(target),
    )


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
    from tirlite.schedules.auto.orders import orders

    normal, found = Normalize()(func), FindReductions(integers=True)
    facts = Facts(found(normal))
    steps, figures = list[Pass](() if facts.func is normal else (found,)), list[str]()
    for rules in _rules(target, Form.USUAL):
        trace = rules.scheduled(facts)
        if trace is not None:
            facts = trace.facts
            steps += trace.taken
            figures += trace.figures
    made = Schedule(func, (*steps, *_loops(target)))
    made.notes = tuple(dict.fromkeys((*figures, *orders(made.func))))
    return made


__all__ = ["auto", "schedule_of"]
