"""Rectangles over time, and the charts that they make: what is drawn, whether as text or as SVG."""

from __future__ import annotations

from tirlite.record import record


@record
class Rectangle:
    """[left, right) x [bottom, top), what is written in it, and what is told when the pointer stands on it."""

    label: str
    left: int
    right: int
    bottom: int
    top: int
    note: str = ""


@record
class Chart:
    """Rectangles, what the axes mean, and a title.

    `lines` are horizontal lines with labels, `instants` vertical ones, `marks` horizontal ones without labels. The
    plane reaches up to `least_top` at least.
    """

    title: str
    rectangles: tuple[Rectangle, ...]
    across: str
    up: str
    lines: tuple[tuple[int, str], ...] = ()
    marks: tuple[int, ...] = ()
    instants: tuple[tuple[int, str], ...] = ()
    least_top: int = 1


def extent(chart: Chart) -> tuple[int, int, int, int]:
    """(left, right, bottom, top), never empty."""
    boxes = chart.rectangles
    left = min((box.left for box in boxes), default=0)
    right = max((box.right for box in boxes), default=1)
    top = max([chart.least_top, *(box.top for box in boxes), *(value for value, _ in chart.lines)])
    bottom = min((box.bottom for box in boxes), default=0)
    return left, max(right, left + 1), bottom, max(top, bottom + 1)
