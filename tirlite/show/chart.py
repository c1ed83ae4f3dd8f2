"""Charts of rectangles over time: labelled rectangles in, text out. For pictures see `svg`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rectangle:
    """[left, right) x [bottom, top), what is written in it, and what is told when the pointer stands on it."""

    label: str
    left: int
    right: int
    bottom: int
    top: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """Rectangles, what the axes mean, a title, and horizontal lines: (height, label)."""

    title: str
    rectangles: tuple[Rectangle, ...]
    across: str
    up: str
    lines: tuple[tuple[int, str], ...] = ()
    marks: tuple[int, ...] = ()


def chart_text(chart: Chart, width: int = 72, height: int = 20) -> str:
    """The chart in letters, one for each rectangle, with a legend: at most `width` columns and `height` lines."""
    if not chart.rectangles:
        return f"{chart.title}\n(nothing to show)"
    left, right, bottom, top = extent(chart)
    columns, rows = min(width, right - left), min(height, max(1, top - bottom))
    grid = [["."] * columns for _ in range(rows)]
    names = [_letter(index) for index in range(len(chart.rectangles))]
    for rectangle, name in zip(chart.rectangles, names, strict=True):
        for row in _cells(rectangle.bottom - bottom, rectangle.top - bottom, top - bottom, rows):
            for column in _cells(rectangle.left - left, rectangle.right - left, right - left, columns):
                grid[row][column] = name
    edges = [str(bottom + (top - bottom) * (row + 1) // rows) for row in range(rows)]
    margin = max(map(len, edges))
    lines = [f"{edges[row]:>{margin}} |{''.join(grid[row])}" for row in reversed(range(rows))]
    axis = f"{left}".ljust(max(columns - len(str(right)), 1)) + str(right)
    lines += [f"{bottom:>{margin}} +{'-' * columns}", f"{'':{margin}}  {axis}  {chart.across}"]
    legend = [
        f"{name} {rectangle.note or rectangle.label}" for name, rectangle in zip(names, chart.rectangles, strict=True)
    ]
    return "\n".join([chart.title, f"{chart.up}", *lines, "", *dict.fromkeys(legend)])


def extent(chart: Chart) -> tuple[int, int, int, int]:
    """(left, right, bottom, top), never empty."""
    boxes = chart.rectangles
    left = min((box.left for box in boxes), default=0)
    right = max((box.right for box in boxes), default=1)
    top = max([box.top for box in boxes] + [value for value, _ in chart.lines], default=1)
    bottom = min((box.bottom for box in boxes), default=0)
    return left, max(right, left + 1), bottom, max(top, bottom + 1)


def _cells(low: int, high: int, extent: int, cells: int) -> range:
    """The cells whose middle lies in [low, high), and at least one where the stretch is not empty."""
    if low >= high:
        return range(0)
    first = -(-(2 * low * cells - extent) // (2 * extent))
    last = -(-(2 * high * cells - extent) // (2 * extent))
    if first < last:
        return range(first, last)
    nearest = min(low * cells // extent, cells - 1)
    return range(nearest, nearest + 1)


def _letter(index: int) -> str:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    return letters[index % len(letters)]
