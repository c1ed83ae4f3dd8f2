"""Draws charts of rectangles over time as text. For pictures see `svg`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby
from math import inf

from tirlite.record import record
from tirlite.show.shown import visible


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


@record
class Grid:
    """`rows` x `columns` cells over [left, right) x [bottom, top): for more rectangles than the eye divides."""

    left: int
    right: int
    bottom: int
    top: int
    columns: int
    rows: int

    def coverage(self, rectangles: Iterable[Rectangle]) -> list[list[float]]:
        """The covered part of each cell, row by row from the bottom; more than 1 where rectangles overlap.

        Cost: for each rectangle the rows that it touches, and once the cells.
        """
        rises = [[0.0] * (self.columns + 2) for _ in range(self.rows)]
        wide, high = self.columns / (self.right - self.left), self.rows / (self.top - self.bottom)
        for box in rectangles:
            begin, end = (box.left - self.left) * wide, (box.right - self.left) * wide
            bottom, top = (box.bottom - self.bottom) * high, (box.top - self.bottom) * high
            for row in range(int(bottom), min(int(top) + 1, self.rows)):
                part = min(top, row + 1) - max(bottom, row)
                if part > 0:
                    _rise(rises[row], begin, part)
                    _rise(rises[row], end, -part)
        return [list(accumulate(row))[: self.columns] for row in rises]


def _rise(row: list[float], place: float, part: float) -> None:
    """Puts down that from `place` on the cells are covered by `part` more, the cell of `place` itself in part."""
    cell = int(place)
    inside = place - cell
    row[cell] += part * (1 - inside)
    row[cell + 1] += part * inside


def runs(levels: Sequence[int]) -> list[tuple[int, int, int]]:
    """(level, begin, end) for each stretch of equal levels above 0."""
    found = []
    for level, places in groupby(range(len(levels)), key=lambda place: levels[place]):
        stretch = list(places)
        if level > 0:
            found.append((level, stretch[0], stretch[-1] + 1))
    return found


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
    return visible("\n".join([chart.title, f"{chart.up}", *lines, "", *below]))


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
