"""Schedules loops without a schedule of their own: by the same steps, chosen by rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tirlite.record import replace
from tirlite.rewrite.find_reductions import FindReductions
from tirlite.rewrite.forms import Form
from tirlite.rewrite.pipeline import Pass
from tirlite.rewrite.pipelines import LOOPS
from tirlite.rewrite.tighten_loops import TightenLoops
from tirlite.rewrite.vectorize_loops import UnmarkLoops, VectorizeLoops
from tirlite.schedules.auto.rules import (
    Rules,
    ScheduleChains,
    ScheduleColumns,
    ScheduleContractions,
    ScheduleRows,
    ScheduleStencils,
    ScheduleTemporaries,
)
from tirlite.target.processor import HOST

if TYPE_CHECKING:
    from tirlite.analysis.facts import Facts
    from tirlite.ir import PrimFunc
    from tirlite.schedules.auto.trace import Trace
    from tirlite.schedules.schedule import Schedule
    from tirlite.target import Target


def auto(target: Target, form: Form = Form.USUAL, given: object = "auto") -> tuple[Pass, ...]:
    """What becomes of loops where no schedule says it, for a target, in a version of this form.

    Where the option that is `given` is "compact", after the steps that join loops and shrink temporaries.
    """
    return (*_rules(target, form, given), *_loops(target))


def _rules(target: Target, form: Form, given: object) -> tuple[Rules, ...]:
    return (
        *((ScheduleTemporaries(),) if given == "compact" else ()),
        ScheduleStencils(target),
        ScheduleChains(target, form),
        ScheduleRows(target),
        ScheduleContractions(target),
        ScheduleColumns(target),
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
    from tirlite.rewrite.pipeline import ForSizes, after
    from tirlite.rewrite.threads.passes import InjectVirtualThreads, SplitThreads
    from tirlite.schedules.auto.orders import orders

    facts, steps = Facts(Normalize()(func)), list[Pass]()
    first = (TightenLoops(), FindReductions(integers=True), UnmarkLoops(), InjectVirtualThreads(), SplitThreads())
    for each in first:
        found = after(each, facts)
        steps += [] if found.func is facts.func else [each]
        facts = found
    usual = _chosen(facts, _rules(target, Form.USUAL, given))
    steps += (*usual.taken, *_loops(target))
    figures = [*usual.figures]
    before = steps[: len(steps) - len(usual.taken) - len(LOOPS)]
    for limits in usual.limits.each():
        of_size = ForSizes(limits, ())
        other = _chosen(facts, _rules(target, of_size.form, given))
        figures += other.figures
        steps.append(ForSizes(limits, (*before, *other.taken, *_loops(target))))
    made = Schedule(func, steps)
    made.notes = tuple(dict.fromkeys((*figures, *orders(made.func))))
    return made


def _chosen(facts: Facts, rules: Iterable[Rules]) -> Trace:
    """The steps of all rules, one after the other."""
    from tirlite.schedules.auto.trace import Trace

    chosen = Trace(facts)
    for each in rules:
        trace = each.scheduled(chosen.facts)
        if trace is not None:
            chosen.facts = trace.facts
            chosen.taken += trace.taken
            chosen.figures += trace.figures
            chosen.limits = chosen.limits.beside(trace.limits)
    return chosen


__all__ = ["auto", "schedule_of"]
