"""The passes that schedule loops by rules: each looks for loops of its kind before anything is loaded that could."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import field
from typing import TYPE_CHECKING

from tirlite.analysis.facts import Facts
from tirlite.ir import Allocate, For, Store, statements_of
from tirlite.record import record
from tirlite.rewrite.forms import Form
from tirlite.rewrite.pipeline import FactsPass, Rewritten
from tirlite.schedules.auto.candidates import has_chains, has_rows, has_stencils, is_down_columns
from tirlite.target import Target

if TYPE_CHECKING:
    from tirlite.schedules.auto.trace import Trace

# So many workers take tiles of time together; of more, most would have none where there are few steps.
_FEW_WORKERS = 2


class Rules(FactsPass):
    """What is done, and when, by what a target has. For functions in normal form (see `Normalize`)."""

    __slots__ = ()

    @abstractmethod
    def scheduled(self, facts: Facts) -> Trace | None:
        """The steps that are taken; None where there is no loop for them."""

    def on(self, facts: Facts) -> Rewritten:
        trace = self.scheduled(facts)
        if trace is None:
            return Rewritten(facts.func)
        return Rewritten(trace.facts.func, facts=trace.facts, limits=trace.limits)


@record
class ScheduleTemporaries(Rules):
    """Loops that fill temporaries, joined with those that read them, so that a few lines or a scalar are left of these.

    Kernels are taken to be without errors: an access out of bounds goes away with an unused value.
    """

    def scheduled(self, facts: Facts) -> Trace | None:
        if next(statements_of(facts.func.body, Allocate), None) is None:
            return None
        from tirlite.schedules.auto.temporaries import scheduled

        return scheduled(facts)


@record
class ScheduleChains(Rules):
    """Nests that fill temporaries, inside of tiles of the nests that read them: so a tile stays in the cache.

    Results that no cache holds are written by vectors, which go past the caches: not in the `USUAL` form, where the
    `LARGE` one does so.
    """

    target: Target = field(default_factory=Target.host)
    form: Form = Form.USUAL

    def scheduled(self, facts: Facts) -> Trace | None:
        if not has_chains(facts.func):
            return None
        from tirlite.schedules.auto.chains import scheduled

        return scheduled(facts, self.target.processor, self.form)


@record
class ScheduleStencils(Rules):
    """Nests that are iterated, by tiles of time and space, by one worker or a few; more share the rows of each step."""

    target: Target = field(default_factory=Target.host)

    def scheduled(self, facts: Facts) -> Trace | None:
        if self.target.workers > _FEW_WORKERS or not has_stencils(facts.func):
            return None
        from tirlite.schedules.auto.stencils import scheduled

        return scheduled(facts, self.target)


@record
class ScheduleRows(Rules):
    """Loops over rows that go through several loops each: rows by blocks, where what these read is the same for all."""

    target: Target = field(default_factory=Target.host)

    def scheduled(self, facts: Facts) -> Trace | None:
        if not has_rows(facts.func):
            return None
        from tirlite.schedules.auto.rows import scheduled
        from tirlite.schedules.auto.tiling import Tiling

        return scheduled(facts, Tiling.of(self.target))


@record
class ScheduleColumns(Rules):
    """Loops over columns that go down one each, carrying numbers along: row by row, all columns of a block together."""

    target: Target = field(default_factory=Target.host)

    def scheduled(self, facts: Facts) -> Trace | None:
        if not any(map(is_down_columns, statements_of(facts.func.body, For))):
            return None
        from tirlite.schedules.auto.columns import scheduled

        return scheduled(facts, self.target.workers)


@record
class ScheduleContractions(Rules):
    """Nests that combine what depends on other loops each: by tiles of registers, over packed panels."""

    target: Target = field(default_factory=Target.host)

    def scheduled(self, facts: Facts) -> Trace | None:
        if not any(map(_is_nest, statements_of(facts.func.body, For))):
            return None
        from tirlite.schedules.auto.contraction_steps import scheduled
        from tirlite.schedules.auto.tiling import Tiling

        return scheduled(facts, Tiling.of(self.target))


def _is_nest(loop: For) -> bool:
    """Whether loops stand one inside of the other around an update, two of them at least in this one."""
    depth, body = 0, loop.body
    while inner := next((stmt for stmt in reversed(body.stmts) if isinstance(stmt, For)), None):
        depth, body = depth + 1, inner.body
    return depth >= 2 and bool(body.stmts) and isinstance(body.stmts[-1], Store)
