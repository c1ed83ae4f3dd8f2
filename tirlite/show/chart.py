"""Draws charts of rectangles over time as text. For pictures see `svg`."""

from __future__ import annotations

from math import inf

from tirlite.show.rectangle import Chart, Grid, Rectangle, extent

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
# A cell's sign by how much of it is covered, and how the signs are explained.
_SHADES = ((0.02, "."), (0.5, ":"), (0.98, "+"), (inf, "#"))
_KEY = "`.` free, `:` less than half, `+` more, `#` all of it"


def chart_text(chart: Chart, width: int = 72, height: int = 20, legend: int = 62) -> str:
    """The chart in letters, one for each rectangle, with a legend of at most `legend` lines under it.

    The plane takes at most `width` columns and `height` lines. Where there are more rectangles than letters, signs tell
    how much of the plane they cover.
    """
    if not chart.rectangles:
        return f"{chart.title}\n(nothing to show)"
    left, right, bottom, top = extent(chart)
    margin = len(str(top))
    columns, rows = max(1, min(width - margin - 2, right - left)), max(1, min(height, top - bottom))
    if len(chart.rectangles) <= len(_LETTERS):
        plane = _in_letters(chart, columns, rows)
        below = _legend(chart.rectangles, legend)
    else:
        plane = _in_shades(chart, columns, rows)
        below = [f"{len(chart.rectangles)} rectangles: {_KEY}"]
    edges = [str(bottom + (top - bottom) * (row + 1) // rows) for row in range(rows)]
    lines = [f"{edges[row]:>{margin}} |{plane[row]}" for row in reversed(range(rows))]
    axis = f"{left}".ljust(max(columns - len(str(right)), 1)) + str(right)
    lines += [f"{bottom:>{margin}} +{'-' * columns}", f"{'':{margin}}  {axis}  {chart.across}"]
    return "\n".join([chart.title, f"{chart.up}", *lines, "", *below])


def _in_letters(chart: Chart, columns: int, rows: int) -> list[str]:
    left, right, bottom, top = extent(chart)
    grid = [["."] * columns for _ in range(rows)]
    for rectangle, letter in zip(chart.rectangles, _LETTERS, strict=False):
        for row in _cells(rectangle.bottom - bottom, rectangle.top - bottom, top - bottom, rows):
            for column in _cells(rectangle.left - left, rectangle.right - left, right - left, columns):
                grid[row][column] = letter
    return ["".join(row) for row in grid]


def _in_shades(chart: Chart, columns: int, rows: int) -> list[str]:
    coverage = Grid(*extent(chart), columns, rows).coverage(chart.rectangles)
    return ["".join(next(sign for most, sign in _SHADES if part < most) for part in row) for row in coverage]


def _legend(rectangles: tuple[Rectangle, ...], most: int) -> list[str]:
    lines = [f"{letter} {each.note or each.label}" for letter, each in zip(_LETTERS, rectangles, strict=False)]
    return lines if len(lines) <= most else [*lines[: most - 1], f"... {len(lines) - most + 1} more ..."]


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
