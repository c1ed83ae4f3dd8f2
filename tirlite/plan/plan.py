"""A Plan: where everything lies, how good that is, and why. What a strategy returns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, SupportsIndex, TypeVar

from tirlite.diag import public
from tirlite.plan import layout
from tirlite.plan.arguments import bound, demand, demand_extents
from tirlite.plan.bound import lower_bound, open_bound
from tirlite.plan.layout import Layout, demand_whole
from tirlite.plan.problem import Problem
from tirlite.record import cached_property, record
from tirlite.sizes import Size, is_at_most, maximum

if TYPE_CHECKING:
    from tirlite.show import Styled

K = TypeVar("K")
# Of more requests, a notebook would hold megabytes for each time that a plan is shown.
_CLOSER = 2_000


@record(slots=False)
class Plan(Layout):
    """Where each request lies: `placements[id]` is (pool, offset in bytes), `pools[name]` is a PlannedPool of a memory.

    A plan made by hand needs its placements alone: `Plan.of(problem, {"a": ("arena", 0), "b": ("arena", 64)})`. It is
    not checked before `check` or `solve` sees it.
    """

    @classmethod
    def of(
        cls,
        problem: Problem,
        placements: Mapping[str, tuple[str, Size]],
        strategy: str = "given",
        in_place: Iterable[tuple[str, str]] = (),
    ) -> Plan:
        """The plan with these placements, in the smallest pools that hold them, and these pairs in place."""
        return cls.from_layout(layout.given(problem, placements, strategy, in_place))

    @classmethod
    def from_layout(cls, data: Layout) -> Plan:
        """The plan with this data."""
        return cls(**{each.name: getattr(data, each.name) for each in fields(Layout)})

    @cached_property
    def lower_bound(self) -> Size:
        """A lower bound of the bytes of every plan for the problem that takes the same pairs in place.

        What is live at one time needs that much, see `plan.lower_bound`; a strategy may have proved more.
        """
        return maximum(lower_bound(self.problem, self.in_place), self.proved, self.proved_open)

    @cached_property
    def open_bound(self) -> Size:
        """A lower bound of the bytes of every plan for the problem, whichever pairs it takes in place."""
        return maximum(open_bound(self.problem), self.proved_open) if self.problem.in_place else self.lower_bound

    @cached_property
    def gap(self) -> float | None:
        """The excess of the plan over the lower bound, as a part of the bound; 0 where the bound is 0.

        None where that depends on the dims: ask `plan.at({n: 100}).gap` then.
        """
        if self.proved_optimal:
            return 0.0
        if isinstance(self.total, int) and isinstance(self.lower_bound, int):
            return (self.total - self.lower_bound) / self.lower_bound if self.lower_bound else 0.0
        return None

    @cached_property
    def proved_optimal(self) -> bool:
        """Whether no plan needs fewer bytes, proved for all values of the dims."""
        is_shown = bool(self.proved_open) and self.total == self.proved_open
        return is_shown or is_at_most(self.total, self.open_bound)

    @public
    def at(self, binding: Mapping[K, SupportsIndex] | None = None, /, **named: SupportsIndex) -> Plan:
        """The plan with constant sizes and offsets that this one becomes when its dims have these values.

        `plan.at({n: 5})`, `plan.at({"n": 5})` and `plan.at(n=5)` are the same. Raises PlanError for a value that
        contradicts the facts of its dim, KernelError for a dim without a value.
        """
        return layout.at(self, bound("Plan.at", self.problem.dims, binding, named))

    def sharers(self, pool: str) -> tuple[str, ...]:
        """The ids of the requests in a pool of the plan."""
        return self.residents[pool]

    @public
    def explain(self, first: str | None = None, second: str | None = None) -> str:
        """Who shares with whom and why, and for each pair of up to 12 why or why not; or, with two ids, for these."""
        for name, given in (("first", first), ("second", second)):
            demand("Plan.explain", name, given, "the id of a request", fits=isinstance(given, Hashable))
        from tirlite.plan.report.words import explain_all, explain_pair
        from tirlite.show import visible
        from tirlite.show.html import Readable

        if first is not None and second is not None:
            return Readable(visible(explain_pair(demand_whole(self), first, second)))
        return Readable(visible(explain_all(demand_whole(self), first)))

    @public
    def to_text(self, binding: Mapping[K, SupportsIndex] | None = None, *, width: int = 72, height: int = 20) -> str:
        """A chart of offsets over time, in letters. Symbolic sizes are drawn at `binding`, or at middling values."""
        demand_extents("Plan.to_text", width=width, height=height)
        from tirlite.plan.report.chart import chart_of
        from tirlite.show import chart_text

        values = bound("Plan.to_text", self.problem.dims, binding, {})
        return chart_text(chart_of(demand_whole(self), self.lower_bound, values), width, height)

    @public
    def to_svg(self, binding: Mapping[K, SupportsIndex] | None = None) -> str:
        """A chart of offsets over time, as SVG. Symbolic sizes are drawn at `binding`, or at middling values."""
        from tirlite.plan.report.chart import chart_of
        from tirlite.show import chart_svg

        values = bound("Plan.to_svg", self.problem.dims, binding, {})
        return chart_svg(chart_of(demand_whole(self), self.lower_bound, values))

    @public
    def to_html(self, title: str = "Storage plan") -> str:
        """A page for browsers, which needs nothing else and asks nothing of a network.

        It shows lifetimes and offsets over time, planned and without sharing; where one points, a buffer with its
        reason and its line; of two that are clicked, why they share or do not; and a slider for each dim.
        """
        from tirlite.plan.report.browser.page import Shown, plan_page

        return plan_page(title, self.problem, [Shown(demand_whole(self), self.lower_bound)])

    def to_json(self) -> str:
        """The plan as JSON, with its problem and its figures."""
        from tirlite.plan.tables.plan_json import layout_to_json

        sizes = {"total": self.total, "lower_bound": self.lower_bound, "open_bound": self.open_bound}
        return layout_to_json(demand_whole(self), sizes, {"gap": self.gap, "proved_optimal": self.proved_optimal})

    @classmethod
    @public
    def from_json(cls, text: str) -> Plan:
        """The plan that `to_json` wrote, over dims of the same names and facts."""
        from tirlite.plan.tables.plan_json import layout_from_json

        return cls.from_layout(layout_from_json(text))

    def __str__(self) -> str:
        from tirlite.plan.report.words import summary

        return summary(self, self.lower_bound, self.gap)

    def styled(self) -> Styled:
        """What `print` shows, in pieces with roles: `tirlite.show.write` colours it where the terminal has colours."""
        from tirlite.plan.report.words import styled

        return styled(str(self))

    def _repr_html_(self) -> str:
        """For notebooks: the figures and the table, the chart, the reasons, and the page of `to_html`."""
        from tirlite.show import Piece, block, folded, framed_page, picture

        parts = [block(self.styled()), picture(self.to_svg()), folded("why", block([Piece(self.explain())]))]
        if len(self.placements) <= _CLOSER:
            parts.append(folded("look closer", framed_page(self.to_html())))
        return "".join(parts)
