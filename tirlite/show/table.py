"""Writes tables as text: a heading and rows of values in aligned lines."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.show.shown import visible


def table(heading: Sequence[str], rows: Sequence[Sequence[object]], limit: int | None = None) -> str:
    """The rows under the heading in aligned columns, numbers to the right, without a final newline.

    Beyond `limit` rows the middle is left out, and a line says how many.
    """
    hidden = 0
    if limit is not None and len(rows) > limit:
        hidden = len(rows) - limit
        rows = [*rows[: limit - limit // 2], *rows[len(rows) - limit // 2 :]]
    cells = [[visible(str(value)) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(heading, *cells, strict=True)]
    right = [
        bool(rows) and all(isinstance(value, int | float) for value in column) for column in zip(*rows, strict=True)
    ]
    right = right or [False] * len(heading)
    lines = [_line(heading, widths, right), "  ".join("-" * width for width in widths)]
    lines += [_line(row, widths, right) for row in cells]
    if hidden:
        assert limit is not None
        lines.insert(2 + limit - limit // 2, f"... {hidden} more ...")
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = (
        cell.rjust(width) if to_right else cell.ljust(width)
        for cell, width, to_right in zip(cells, widths, right, strict=True)
    )
    return "  ".join(padded).rstrip()
