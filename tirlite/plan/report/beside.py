"""Draws the charts of two plans side by side: before and after, to one scale."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest

from tirlite.diag import public
from tirlite.plan.arguments import bound, demand, demand_extents
from tirlite.plan.plan import Plan
from tirlite.plan.solve import solve
from tirlite.record import record, replace
from tirlite.show import Chart, chart_svg, chart_text, picture
from tirlite.show.chart import extent
from tirlite.sizes import Dim

_GAP = "    "


@record
class Comparison:
    """Two plans, and how they look beside each other. `str` of it is the chart in letters."""

    before: Plan
    after: Plan
    binding: Mapping[Dim, int] | None = None

    @public
    def to_text(self, *, width: int = 120, height: int = 20) -> str:
        """Both charts in letters, each half of `width` columns wide."""
        demand_extents("Comparison.to_text", width=width, height=height)
        left, right = (chart_text(each, width // 2 - len(_GAP), height).splitlines() for each in self._charts())
        column = max(len(line) for line in left)
        pairs = zip_longest(left, right, fillvalue="")
        return "\n".join(f"{one:<{column}}{_GAP}{other}".rstrip() for one, other in pairs)

    @public
    def to_svg(self, width: int = 1440, height: int = 540) -> str:
        """Both charts in one SVG picture; rectangles tell their names and sizes under the pointer."""
        demand_extents("Comparison.to_svg", width=width, height=height)
        half = width // 2
        parts = [chart_svg(each, half, height) for each in self._charts()]
        moved = "".join(part.replace("<svg ", f'<svg x="{place * half}" ', 1) for place, part in enumerate(parts))
        size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n{moved}</svg>\n'

    def _charts(self) -> tuple[Chart, Chart]:
        from tirlite.plan.report.chart import chart_of

        values = bound("beside", self.after.problem.dims, self.binding, {})
        charts = [chart_of(plan, plan.lower_bound, values) for plan in (self.before, self.after)]
        top = max(extent(chart)[3] for chart in charts)
        one, other = (replace(chart, least_top=top) for chart in charts)
        return one, other

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return picture(self.to_svg())


@public
def beside(after: Plan, before: Plan | None = None, binding: Mapping[Dim, int] | None = None) -> Comparison:
    """A plan beside another one for the same requests; left out, that is the plan that shares nothing.

    Symbolic sizes are drawn at `binding`, or at middling values.
    """
    demand("beside", "after", after, "a Plan", fits=isinstance(after, Plan))
    demand("beside", "before", before, "a Plan, or None", fits=before is None or isinstance(before, Plan))
    return Comparison(before or solve(after.problem, "none"), after, binding)
