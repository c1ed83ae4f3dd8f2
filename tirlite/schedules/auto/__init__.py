"""Schedules loops without a schedule of their own: by the same steps, chosen by rules.

Each rule tests for loops of its kind before it imports the modules that schedule them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import field
from typing import TYPE_CHECKING

from tirlite.analysis.facts import Facts
from tirlite.ir import Allocate, For, PrimFunc, Store, statements_of
from tirlite.record import replace
from tirlite.rewrite.forms import Form
from tirlite.rewrite.normalize import Normalize
from tirlite.rewrite.on_demand import (
    FindReductions,
    InjectVirtualThreads,
    NameValues,
    SplitThreads,
    TightenLoops,
    UnmarkLoops,
)
from tirlite.rewrite.pipeline import FactsPass, ForSizes, Pass, Rewritten, after
from tirlite.rewrite.pipelines import LOOPS
from tirlite.rewrite.vectors.vectorize_loops import VectorizeLoops
from tirlite.schedules.auto.candidates import has_chains, has_rows, has_stencils, is_down_columns
from tirlite.target import Target
from tirlite.target.processor import HOST

if TYPE_CHECKING:
    from tirlite.schedules.auto.trace import Trace
    from tirlite.schedules.schedule import Schedule


# With more workers than this, most would have no time tile to run if there are few steps.
_FEW_WORKERS = 2


class Rules(FactsPass):
    """A pass that schedules one kind of nest for a target. Takes functions in normal form (see `Normalize`)."""

    @abstractmethod
    def scheduled(self, facts: Facts) -> Trace | None:
        """The steps to take; None if there is no loop for them."""

    def on(self, facts: Facts) -> Rewritten:
        trace = self.scheduled(facts)
        if trace is None:
            return Rewritten(facts.func)
        return Rewritten(trace.facts.func, facts=trace.facts, limits=trace.limits)


class ScheduleTemporaries(Rules):
    """Joins loops that fill temporaries with those that read them, which leaves a few lines or a scalar.

    Assumes a kernel without errors: an access out of bounds disappears with an unused value.
    """

    def scheduled(self, facts: Facts) -> Trace | None:
        if next(statements_of(facts.func.body, Allocate), None) is None:
            return None
        from tirlite.schedules.auto.temporaries import scheduled

        return scheduled(facts)


class ScheduleChains(Rules):
    """Tiles nests that read temporaries, and computes a tile's temporaries right before it, while it is in the cache.

    Results too large for any cache are stored by vectors that bypass the caches; if sizes vary, in the `LARGE` form.
    """

    target: Target = field(default_factory=Target.host)
    form: Form = Form.USUAL

    def scheduled(self, facts: Facts) -> Trace | None:
        if not has_chains(facts.func):
            return None
        from tirlite.schedules.auto.chains import scheduled

        return scheduled(facts, self.target, self.form)


class ScheduleStencils(Rules):
    """Tiles iterated stencils in time and space, for few workers; more of them share the rows of each step."""

    target: Target = field(default_factory=Target.host)

    def scheduled(self, facts: Facts) -> Trace | None:
        if self.target.workers > _FEW_WORKERS or not has_stencils(facts.func):
            return None
        from tirlite.schedules.auto.stencils import scheduled

        return scheduled(facts, self.target)


class ScheduleRows(Rules):
    """Processes rows that several loops go through, as of softmax or attention, in blocks if they read common data."""

    target: Target = field(default_factory=Target.host)

    def scheduled(self, facts: Facts) -> Trace | None:
        if not has_rows(facts.func):
            return None
        from tirlite.schedules.auto.rows import scheduled
        from tirlite.schedules.auto.tiling import Tiling

        return scheduled(facts, Tiling.of(self.target))


class ScheduleColumns(Rules):
    """Processes columns with a recurrence down each, row by row: all columns of a block take a step together."""

    target: Target = field(default_factory=Target.host)

    def scheduled(self, facts: Facts) -> Trace | None:
        if not any(map(is_down_columns, statements_of(facts.func.body, For))):
            return None
        from tirlite.schedules.auto.columns import scheduled

        return scheduled(facts, self.target.workers)


class ScheduleContractions(Rules):
    """Schedules contractions (matrix products, convolutions) by register tiles over packed panels."""

    target: Target = field(default_factory=Target.host)

    def scheduled(self, facts: Facts) -> Trace | None:
        if not any(map(_is_nest, statements_of(facts.func.body, For))):
            return None
        from tirlite.schedules.auto.contraction_steps import scheduled
        from tirlite.schedules.auto.tiling import Tiling

        return scheduled(facts, Tiling.of(self.target))


def _is_nest(loop: For) -> bool:
    """Whether three loops or more are nested around an update."""
    depth, body = 0, loop.body
    while inner := next((stmt for stmt in reversed(body.stmts) if isinstance(stmt, For)), None):
        depth, body = depth + 1, inner.body
    return depth >= 2 and bool(body.stmts) and isinstance(body.stmts[-1], Store)


def auto(target: Target, form: Form = Form.USUAL, given: object = "auto") -> tuple[Pass, ...]:
    """The passes that schedule a function without a schedule of its own, for a target, in the version `form`.

    If `given` is "compact", `ScheduleTemporaries` comes first.
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
    """The passes for the loops that no rule has scheduled, with the registers of a target."""
    if target.name == HOST:
        return LOOPS
    return tuple(replace(each, target=target.name) if isinstance(each, VectorizeLoops) else each for each in LOOPS)


def schedule_of(func: PrimFunc, given: object, target: Target) -> Schedule:
    """The schedule that `tl.compile` follows for the value `given` of its option."""
    from tirlite.schedules.schedule import Schedule

    if callable(given):
        return Schedule.by(given, func)
    if given is None or isinstance(given, tuple):
        return Schedule(func, given or ())
    facts, steps = Facts(Normalize()(func)), list[Pass]()
    prepare = (NameValues(), TightenLoops(), FindReductions(integers=True), UnmarkLoops())
    for each in (*prepare, InjectVirtualThreads(), SplitThreads()):
        found = after(each, facts)
        steps += [] if found.func is facts.func else [each]
        facts = found
    usual = _chosen(facts, _rules(target, Form.USUAL, given))
    steps += (*usual.taken, *_loops(target))
    figures = [*usual.figures]
    before = steps[: len(steps) - len(usual.taken) - len(LOOPS)]
    for limits in usual.limits.each():
        if given == "compact" and limits.small_below:
            continue  # that version would leave temporaries whole
        of_size = ForSizes(limits, ())
        other = _chosen(facts, _rules(target, of_size.form, given))
        figures += other.figures
        steps.append(ForSizes(limits, (*before, *other.taken, *_loops(target))))
    return Schedule(func, steps, figures=figures)


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
