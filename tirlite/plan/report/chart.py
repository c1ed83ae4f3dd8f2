"""Draws a layout as a chart of rectangles: offsets over time."""

from __future__ import annotations

from collections.abc import Mapping

from tirlite.plan.in_place import grouped, possible
from tirlite.plan.layout import Layout, at
from tirlite.plan.order import samples
from tirlite.plan.request import most_live
from tirlite.show import Chart, Rectangle
from tirlite.sizes import Dim, Size, evaluate
from tirlite.sizes.evaluate import as_number


def chart_of(layout: Layout, bound: Size, binding: Mapping[Dim, int] | None = None) -> Chart:
    """The requests of a layout as rectangles, time across and bytes upward, its pools one above the other.

    Symbolic sizes are drawn at `binding`, or at middling values that the facts allow, told in the title.
    """
    dims = layout.problem.dims
    values = dict(samples(dims, 1)[0]) | dict(binding or {})
    constant = at(layout, values) if dims else layout
    base = _bases(constant)
    boxes = [
        _box(constant, layout, request.id, base, low, high)
        for request in layout.problem.requests
        for low, high in request.live
        if request.id in layout.placements
    ]
    when = f", at {', '.join(f'{dim.name} = {values[dim]}' for dim in dims)}" if dims else ""
    title = f"{layout.strategy}: {layout.total} bytes{when}"
    floor = evaluate(bound, values)
    line = (floor, f"lower bound {floor}")
    live, time = _busiest(constant)
    peak = ((time, f"peak: {live} bytes live at time {time}"),) if boxes else ()
    return Chart(title, tuple(boxes), "time", "bytes", (line,), tuple(base.values()), peak)


def _bases(constant: Layout) -> dict[str, int]:
    """Where each pool is drawn: one on another; with padding between them where that counts."""
    if constant.problem.contiguous:
        bases: dict[str, int] = {}
        below = 0
        for memory, end in constant.row.ends.items():
            bases[memory] = below
            below += as_number(end) * as_number(constant.problem.memories[memory].copies)
        starts = {name: as_number(start) for name, start in constant.row.starts.items()}
        return {name: bases[region.memory] + starts[name] for name, region in constant.pools.items()}
    base: dict[str, int] = {}
    height = 0
    for name, region in constant.pools.items():
        base[name] = height
        height += as_number(region.size) * _copies(constant, name)
    return base


def _busiest(constant: Layout) -> tuple[int, int]:
    """The most bytes that are live at one time, and the first such time; pairs in place count once at handovers."""
    pairs = set(constant.in_place)
    taken = [each for each in possible(constant.problem) if each.pair in pairs] if pairs else []
    return most_live(
        ((interval,), as_number(size) * _copies(constant, constant.placements[group.members[0].id].pool))
        for group in grouped(constant.problem.requests, taken)
        for interval, size in group.pieces
    )


def _box(constant: Layout, layout: Layout, name: str, base: Mapping[str, int], low: int, high: int) -> Rectangle:
    pool, offset = constant.placements[name]
    bottom = base[pool] + as_number(offset)
    size = layout.problem.by_id[name].size
    where = f"`{pool}` at {layout.placements[name].offset}"
    note = f"{name}: {size} bytes in {where}, live [{low}, {high})"
    return Rectangle(name, low, high, bottom, bottom + as_number(constant.problem.by_id[name].size), note)


def _copies(constant: Layout, pool: str) -> int:
    """How often a pool exists: above the one that is drawn, its copies are left blank."""
    return as_number(constant.problem.memories[constant.pools[pool].memory].copies)
