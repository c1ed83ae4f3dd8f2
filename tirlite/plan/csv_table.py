"""A CSV file as cells: the text in, its cells with their places out, and the same text again, with a column changed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from tirlite.diag import Message, PlanError, Source, Span
from tirlite.record import record

# A quoted cell holds commas, and quotes that are doubled.
_CELL = re.compile(r'\s*"(?:[^"]|"")*"\s*(?=,|$)|[^,]*')
_MARK = "\ufeff"


class NoHeader(Message):
    """A table is empty.

    Example: A file of no bytes.
    Fix: Begin it with the names of the columns: `id,lower,upper,size`.
    """

    code = "no-csv-header"
    raises = PlanError
    title = "`{name}` is empty"
    help = "the first line of a table names its columns, as in `id,lower,upper,size`"

    name: str


class DuplicateColumn(Message):
    """Two columns of a table have one name.

    Example: `id,lower,upper,size,size`.
    Fix: Drop or rename one of them.
    """

    code = "duplicate-column"
    raises = PlanError
    title = "two columns are called `{column}`"
    label = "the second one"
    related_label = "the first one"

    column: str


class BadRow(Message):
    """A line that has not one cell for each column.

    Example: `a,0,3` under `id,lower,upper,size`.
    Fix: Give the line one cell for each column; a cell with a comma stands in double quotes.
    """

    code = "bad-csv-row"
    raises = PlanError
    title = "this line has {cells}, and the table has {columns} columns"
    label = "{what}"
    help = "a cell that holds a comma stands in double quotes"

    cells: str
    columns: int
    what: str


@record(eq=False, slots=False)
class CsvTable:
    """The cells of a CSV file as they were written; `tail` is what follows the last row."""

    source: Source
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    tail: str

    @cached_property
    def columns(self) -> dict[str, int]:
        """The place of each column, by its name. Raises PlanError where two have the same one."""
        places: dict[str, int] = {}
        for place, cell in enumerate(self.header):
            name = value_of(cell.removeprefix(_MARK))
            if name in places:
                raise DuplicateColumn(name, span=self.span(0, place), related=self.span(0, places[name])).error()
            places[name] = place
        return places

    def span(self, row: int, place: int) -> Span:
        """Where a cell stands. Row 0 is the header."""
        cells = self.header if row == 0 else self.rows[row - 1]
        begin = sum(len(cell) + 1 for cell in cells[:place])
        cell = cells[place]
        begin += len(cell) - len(cell.lstrip())
        return Span(self.source, row + 1, begin, row + 1, begin + len(cell.strip()))

    def text(self) -> str:
        """The file, as it was read."""
        return "\n".join(",".join(cells) for cells in (self.header, *self.rows)) + self.tail

    def with_column(self, name: str, values: Sequence[object]) -> CsvTable:
        """The table with these values in the column `name`, which is the last one if there was none."""
        cells = [name, *(cell_of(str(value)) for value in values)]
        old = (self.header, *self.rows)
        if name in self.columns:
            place = self.columns[name]
            new = [_replaced(row, place, cell) for row, cell in zip(old, cells, strict=True)]
        else:
            new = [_appended(row, cell) for row, cell in zip(old, cells, strict=True)]
        return CsvTable(self.source, new[0], tuple(new[1:]), self.tail)


def read_table(name: str, text: str) -> CsvTable:
    """The cells of `text`. Raises PlanError where a line has not one cell for each column."""
    body = text.rstrip("\r\n")
    ending = text[len(body) :]
    if ending.startswith("\r"):
        body, ending = body + "\r", ending[1:]
    lines = body.split("\n")
    source = Source(name, tuple(line.removesuffix("\r") for line in lines))
    rows = [_cells(line) for line in lines]
    header = rows[0]
    if not body.strip(_MARK + "\r"):
        raise NoHeader(name).error()
    for number, cells in enumerate(rows):
        if len(cells) != len(header):
            raise _bad_row(source, number, cells, header)
    return CsvTable(source, header, tuple(rows[1:]), ending)


def value_of(cell: str) -> str:
    """What a cell says: without space around it, and without its quotes."""
    value = cell.strip()
    if len(value) > 1 and value[0] == value[-1] == '"':
        return value[1:-1].replace('""', '"')
    return value


def cell_of(value: str) -> str:
    """The cell that says `value`."""
    if value != value.strip() or any(sign in value for sign in ',"'):
        return '"' + value.replace('"', '""') + '"'
    return value


def _cells(line: str) -> tuple[str, ...]:
    if '"' not in line:
        return tuple(line.split(","))
    cells = []
    place = 0
    while place <= len(line):
        match = _CELL.match(line, place)
        assert match is not None
        cells.append(match[0])
        place = match.end() + 1
    return tuple(cells)


def _bad_row(source: Source, number: int, cells: tuple[str, ...], header: tuple[str, ...]) -> Exception:
    line = source.lines[number]
    count, width = len(cells), len(header)
    if not line.strip():
        return BadRow("no cells", width, "an empty line", span=Span(source, number + 1, 0, number + 1, 1)).error()
    begin = sum(len(cell) + 1 for cell in cells[:width]) if count > width else len(line)
    what = "too much" if count > width else f"`{value_of(header[count])}` is missing"
    told = f"{count} cell{'s' if count > 1 else ''}"
    return BadRow(
        told, width, what, span=Span(source, number + 1, begin, number + 1, max(len(line), begin + 1))
    ).error()


def _replaced(row: tuple[str, ...], place: int, cell: str) -> tuple[str, ...]:
    if place == len(row) - 1 and row[place].endswith("\r"):
        cell += "\r"
    return (*row[:place], cell, *row[place + 1 :])


def _appended(row: tuple[str, ...], cell: str) -> tuple[str, ...]:
    if row[-1].endswith("\r"):
        return (*row[:-1], row[-1].removesuffix("\r"), cell + "\r")
    return (*row, cell)
