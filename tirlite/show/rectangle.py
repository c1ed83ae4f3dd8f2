"""Rectangles over time, the charts that they make, and how much of each cell of a grid they cover."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby

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
