"""Tells how much of each cell of a grid rectangles cover. For more of them than the eye divides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby

from tirlite.record import record
from tirlite.show.rectangle import Rectangle


@record
class Grid:
    """`rows` x `columns` cells over [left, right) x [bottom, top)."""

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
