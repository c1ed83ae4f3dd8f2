"""Reads a CSV file as cells with their places, and writes the same text again, with a column changed."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from tirlite.diag import Message, PlanMessage, Source, Span, hint
from tirlite.plan.arguments import dim_of, refuse_contrary
from tirlite.plan.tables.text import names_in, parse_facts
from tirlite.record import cached_property, record
from tirlite.sizes import Dim, Size

# A quoted cell holds commas, and quotes that are doubled.
# Of a table whose first line has none of the first, the next may be meant.
_SEPARATORS = ",;\t"
_CELLS = {
    sign: re.compile(rf'(?P<quoted>[^\S{sign}]*"(?:[^"]|"")*"[^\S{sign}]*(?={sign}|$))|[^{sign}]*')
    for sign in _SEPARATORS
}
_MARK = "\ufeff"


class NoHeader(PlanMessage):
    """A table is empty, or no table but JSON.

    Example: A file of no bytes.
    """

    code = "no-csv-header"
    title = "`{name}` is {what}"
    help = "the first line of a table names its columns, as in `id,lower,upper,size`"


class DuplicateColumn(PlanMessage):
    """Two columns of a table have one name.

    Example: `id,lower,upper,size,size`.
    Fix: Drop or rename one of them.
    """

    title = "two columns are called `{column}`"
    label = "the second one"
    related_label = "the first one"


class BadRow(PlanMessage):
    """A line does not have one cell for each column.

    Example: `a,0,3` under `id,lower,upper,size`.
    Fix: Give the line one cell for each column; a cell with a comma stands in double quotes.
    """

    code = "bad-csv-row"
    title = "this line has {cells}, and the table has {columns} columns"
    label = "{what}"
    help = "put a cell that contains the separator into double quotes"


class BadQuotes(PlanMessage):
    """A cell begins with a double quote and is not a quoted cell.

    Example: `"a,0,3,64`, or a cell that goes on in the next line.
    """

    code = "bad-csv-quotes"
    title = "a cell begins with a double quote and does not end with its partner"
    help = "a quoted cell ends with a double quote on the same line; those inside of it are doubled"


class LoneReturn(PlanMessage):
    """A line of a table ends with a carriage return, and no line feed after it.

    Example: A table that was saved for old Macintoshes.
    """

    title = "a carriage return stands inside of a line"
    label = "behind this"
    help = "lines end with a line feed, or with both: save the table with the line ends of Unix or Windows"


@record(eq=False, slots=False)
class CsvTable:
    """The cells of a CSV file as they were written; `tail` is what follows the last row.

    `blank` holds the lines that have no cells, by their numbers from 0.
    """

    source: Source
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    tail: str
    blank: Mapping[int, str] = MappingProxyType({})
    separator: str = ","

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
        line = self._lines[row] + 1
        begin = sum(len(cell) + 1 for cell in cells[:place])
        cell = cells[place]
        begin += len(cell) - len(cell.lstrip())
        return Span(self.source, line, begin, line, begin + len(cell.strip()))

    @cached_property
    def _lines(self) -> Sequence[int]:
        """The number of the line of each row, from 0."""
        lines = range(1 + len(self.rows) + len(self.blank))
        return [line for line in lines if line not in self.blank] if self.blank else lines

    def text(self) -> str:
        """The file, as it was read."""
        lines = dict(self.blank)
        lines.update(zip(self._lines, map(self.separator.join, (self.header, *self.rows)), strict=True))
        return "\n".join(lines[number] for number in range(len(lines))) + self.tail

    def with_column(self, name: str, values: Sequence[object]) -> CsvTable:
        """The table with these values in the column `name`, which is the last one if there was none."""
        cells = [name, *(cell_of(str(value), self.separator) for value in values)]
        old = (self.header, *self.rows)
        if name in self.columns:
            place = self.columns[name]
            new = [_replaced(row, place, cell) for row, cell in zip(old, cells, strict=True)]
        else:
            new = [_appended(row, cell) for row, cell in zip(old, cells, strict=True)]
        return CsvTable(self.source, new[0], tuple(new[1:]), self.tail, self.blank, self.separator)


def read_table(name: str, text: str, wrong: list[Message]) -> CsvTable:
    """The cells of `text`, without blank lines. Raises PlanError where it is no table.

    Messages about lines without one cell for each column are added to `wrong`; these lines count as blank.
    """
    body = text.rstrip("\r\n")
    ending = text[len(body) :]
    if ending.startswith("\r"):
        body, ending = body + "\r", ending[1:]
    lines = body.split("\n")
    source = Source(name, tuple(line.removesuffix("\r") for line in lines))
    if "\r" in text:
        _refuse_lone_returns(source)
    blank = {number: line for number, line in enumerate(lines) if not line.strip(_MARK + string.whitespace)}
    full = [number for number in range(len(lines)) if number not in blank]
    if not full:
        raise NoHeader(name, "empty").error()
    first = lines[full[0]]
    if first.lstrip(_MARK + string.whitespace).startswith(("{", "[")):
        raise NoHeader(name, "JSON, which `Problem.from_json` reads, and not a table").error()
    separator = next((sign for sign in _SEPARATORS if sign in first), ",")
    header = _cells(source, full[0], first, separator)
    rows = []
    for number in full[1:]:
        cells = _cells(source, number, lines[number], separator)
        if len(cells) == len(header):
            rows.append(cells)
        else:
            wrong.append(_bad_row(source, number, cells, header))
            blank[number] = lines[number]
    return CsvTable(source, header, tuple(rows), ending, blank, separator)


def _refuse_lone_returns(source: Source) -> None:
    for number, line in enumerate(source.lines, 1):
        place = line.find("\r")
        if place >= 0:
            raise LoneReturn(span=Span(source, number, max(place - 1, 0), number, max(place, 1))).error()


def value_of(cell: str) -> str:
    """The value of a cell: without space around it, and without its quotes."""
    value = cell.strip()
    if len(value) > 1 and value[0] == value[-1] == '"':
        return value[1:-1].replace('""', '"')
    return value


def cell_of(value: str, separator: str = ",") -> str:
    """The cell for a value, in quotes if it needs them."""
    if value != value.strip() or separator in value or '"' in value:
        return '"' + value.replace('"', '""') + '"'
    return value


def _cells(source: Source, number: int, line: str, separator: str) -> tuple[str, ...]:
    if '"' not in line:
        return tuple(line.split(separator))
    cells = []
    place = 0
    while place <= len(line):
        match = _CELLS[separator].match(line, place)
        assert match is not None
        if not match["quoted"] and match[0].lstrip().startswith('"'):
            raise BadQuotes(span=Span(source, number + 1, place, number + 1, match.end())).error()
        cells.append(match[0])
        place = match.end() + 1
    return tuple(cells)


def _bad_row(source: Source, number: int, cells: tuple[str, ...], header: tuple[str, ...]) -> Message:
    line = source.lines[number]
    count, width = len(cells), len(header)
    begin = sum(len(cell) + 1 for cell in cells[:width]) if count > width else len(line)
    what = "too much" if count > width else f"`{value_of(header[count])}` is missing"
    told = f"{count} cell{'s' if count > 1 else ''}"
    return BadRow(told, width, what, span=Span(source, number + 1, begin, number + 1, max(len(line), begin + 1)))


def _replaced(row: tuple[str, ...], place: int, cell: str) -> tuple[str, ...]:
    if place == len(row) - 1 and row[place].endswith("\r"):
        cell += "\r"
    return (*row[:place], cell, *row[place + 1 :])


def _appended(row: tuple[str, ...], cell: str) -> tuple[str, ...]:
    if row[-1].endswith("\r"):
        return (*row[:-1], row[-1].removesuffix("\r"), cell + "\r")
    return (*row, cell)


class UnknownName(PlanMessage):
    """Something is told of a name that no size has.

    Example: `--bind M=4` for a table whose sizes mention `N` alone.
    Fix: Correct the name.
    """

    code = "unknown-dim"
    title = "{what} `{name}`, and no size has such a name"
    help = "the names in sizes are {known}{hint}"


@record
class Names:
    """What the names stand for: in `sizes` dims with their facts, or values; in `plain` any positive integer."""

    plain: Mapping[str, Dim]
    sizes: Mapping[str, Size]


def dims_for(texts: Iterable[str], facts: str | Mapping[str, Dim], bind: Mapping[str, int]) -> Names:
    """A dim for each name in the texts of sizes, with the facts and values that are told of it. Raises PlanError."""
    given = parse_facts(facts) if isinstance(facts, str) else facts
    told = {name: dim for name, each in given.items() if (dim := dim_of(each)) is not None}
    names = dict.fromkeys(name for text in dict.fromkeys(texts) for name in names_in(text))
    free = {name: told.get(name) or Dim(name) for name in names}
    for what, named in (("facts tell of", told), ("a value is given to", bind)):
        for name in named:
            if name not in free:
                raise _unknown(what, name, free).error()
    for name, value in bind.items():
        refuse_contrary(free[name], value)
    sizes: dict[str, Size] = {name: bind.get(name, dim + 0) for name, dim in free.items()}
    return Names({name: Dim(name) for name in free}, sizes)


def _unknown(what: str, name: str, free: Mapping[str, Dim]) -> UnknownName:
    known = ", ".join(f"`{each}`" for each in free) or "none: all are numbers"
    return UnknownName(what, name, known, hint(name, free))
