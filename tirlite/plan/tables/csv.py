"""Reads lifetimes from CSV: makes a Problem of a file of one buffer a line.

The format is that of MiniMalloc (Moffitt, ASPLOS 2023): columns `id,lower,upper,size` in any order, and optionally
`alignment`, `gaps` (stretches `lower-upper` in which the buffer is not live, with spaces between) and `offset` (where
given, the buffer stands there). `buffer` and `buffer_id` may stand for `id`, `begin` and `start` for `lower`, and `end`
for `upper` where ends are inclusive, those of gaps too. In place of `size` there may be `size_expr`, an expression over
names of positive integers; `size@4` beside it is its value where its only name is 4. Other columns are kept and
ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TextIO

from tirlite.diag import Message, PlanError, PlanMessage, Source, Span, TirliteError, nearest, public
from tirlite.plan.arguments import demand, dim_of, is_path
from tirlite.plan.layout import Layout, addresses, demand_whole
from tirlite.plan.problem import DuplicateId, Problem
from tirlite.plan.request import Interval, Pool, Request, is_integer
from tirlite.plan.tables.csv_table import CsvTable, Names, cell_of, dims_for, read_table, value_of
from tirlite.plan.tables.problem_json import names_of, size_json
from tirlite.plan.tables.text import parse_size
from tirlite.record import record
from tirlite.sizes import Dim, Proof, Size, evaluate, prove_le

_SAME = {"buffer": "id", "buffer_id": "id", "begin": "lower", "start": "lower"}
_INTEGER = re.compile(r"[+-]?\d{1,4000}", re.ASCII)
_SHORT = 20
_SHOWN = 60
_MOST_DIGITS = 4000
# No error lists more mistakes than this.
_MOST_REPORTED = 20
_GAP = re.compile(r"(-?\d{1,4000})-(-?\d{1,4000})", re.ASCII)
_VALUE_COLUMN = re.compile(r"size@(\d{1,18})", re.ASCII)
# The column that a message about a request is about.
_COLUMN_OF = {
    "negative-size": "size",
    "bad-alignment": "alignment",
    "bad-fixed": "offset",
    "empty-lifetime": "upper",
    "no-lifetime": "gaps",
    # Of `number-too-large`, by what is too large.
    "lifetime": "upper",
    "alignment": "alignment",
    "offset": "offset",
}


class NotUtf8(PlanMessage):
    """A table is not text in UTF-8.

    Example: A spreadsheet's own file instead of a CSV.
    Fix: Export the table as CSV in UTF-8.
    """

    code = "not-utf-8"
    title = "`{name}` is not text in UTF-8: line {line} holds the byte {byte:#04x} in column {column}"


class MissingColumn(PlanMessage):
    """A table of lifetimes lacks a column.

    Example: A first line `id,lower,size`, without `upper`.
    Fix: Add the column that the message names.
    """

    title = "the table has no column `{column}`"
    label = "{hint}"
    help = "a table of lifetimes has the columns `id`, `lower`, `upper`, and `size` or `size_expr`"


class TwoEnds(PlanMessage):
    """A table of lifetimes has a column `upper` and a column `end`, which tell the end in two ways.

    Example: A first line `id,lower,upper,end,size`.
    Fix: Leave one of the two out, or give it another name.
    """

    title = "the table has both `upper` and `end`"
    help = "leave one of them out: `end` is the last time at which a buffer is live, `upper` the one behind it"


class NamelessBuffer(PlanMessage):
    """A line of a table of lifetimes has nothing in its column `id`.

    Example: `,0,3,64` under `id,lower,upper,size`.
    Fix: Give each buffer a name of its own.
    """

    title = "this buffer has no id"
    help = "give each buffer a name of its own in the column `{column}`"


class BadNumber(PlanMessage):
    """A cell of a column of numbers holds something else.

    Example: `a,0,3.5,64` under `id,lower,upper,size`.
    Fix: Write an integer.
    """

    code = "bad-csv-number"
    title = "`{text}` is not an integer"
    label = "the column `{column}` holds integers"
    help = "{hint}"


class BadGap(PlanMessage):
    """A cell of the column `gaps` is not a list of gaps in what the line tells of the buffer's life.

    Example: `7:9`; `8-20` of a buffer that lives from 0 to 10.
    """

    title = "`{text}` is not a gap in a lifetime"
    label = "{why}"
    help = "gaps are half-open stretches `lower-upper` with spaces between, as in `7-9 12-14`"


class PartialGap(PlanMessage):
    """A gap of MiniMalloc's in which a part of the buffer stays live.

    Example: `7-9@0:16` in the column `gaps`.
    """

    title = "in the gap `{text}` a part of the buffer stays live"
    label = "the part behind the `@`"
    help = "only whole buffers have gaps here: drop the gap, or split the buffer into requests with fixed offsets"


class WrongValue(PlanMessage):
    """A column `size@...` that contradicts `size_expr`.

    Example: `size_expr` is `4*N`, and the column for `N=8` says 30.
    Fix: Correct one of the two columns.
    """

    code = "wrong-size-value"
    title = "`{size}` is {value} where {name} = {at}, and the table says {told}"
    label = "not {value}"
    related_label = "the size"


@public
def read_csv(
    source: str | PathLike[str] | TextIO,
    *,
    pools: Sequence[Pool] = (),
    facts: str | Mapping[str, Dim] = "",
    bind: Mapping[str, int] | None = None,
) -> Problem:
    """The problem in a CSV file, which is a path or an open text file.

    `pools` are the memories, as for a Problem: one that is unlimited, where none is given. `facts` tells of the names
    in sizes, which are positive integers, as text (`"N<=64, N%8==0"`) or as dims by name; `bind` gives them values. The
    problem keeps the table for `write_csv`, and is contiguous, as a table tells addresses in one space. Raises
    PlanError with file, line and column for malformed input.
    """
    _check_arguments(source, facts, bind)
    if isinstance(source, str | PathLike):
        name, text = str(source), _decoded(str(source), Path(source).read_bytes())
    else:
        name = str(getattr(source, "name", "<stream>"))
        try:
            text = source.read()
        except UnicodeDecodeError as error:
            text = _decoded(name, error.object)
        demand("read_csv", "source", text, "a path, or an open text file", fits=isinstance(text, str))
    wrong: list[Message] = []
    reader = _Reader.of(read_table(name, text, wrong), facts, bind or {})
    requests = tuple(reader.requests(wrong))
    if wrong:
        raise PlanError(*sorted(wrong, key=_line_of)[:_MOST_REPORTED])
    try:
        problem = Problem(requests, pools, contiguous=True)
    except PlanError as error:
        raise reader.of_request(error) from None
    return problem.with_table(reader.table)


def _line_of(message: Message) -> int:
    return message.span.line if message.span is not None else 0


def _check_arguments(source: object, facts: object, bind: object) -> None:
    is_file = is_path(source) or callable(getattr(source, "read", None))
    demand("read_csv", "source", source, "a path, or an open text file", fits=is_file)
    is_told = isinstance(facts, str) or (isinstance(facts, Mapping) and all(map(dim_of, facts.values())))
    demand("read_csv", "facts", facts, 'a text, as in "N<=64, N%8==0", or a dict from names to dims', fits=is_told)
    is_bound = bind is None or (
        isinstance(bind, Mapping) and all(isinstance(k, str) and is_integer(v) for k, v in bind.items())
    )
    demand("read_csv", "bind", bind, "a dict from names to integers", fits=is_bound)


def _decoded(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8").rpartition("\n")
        line = data.count(b"\n", 0, error.start) + 1
        raise NotUtf8(name, line, data[error.start], len(before[2]) + 1).error() from None


@record
class _Reader:
    """Reads the rows of one table. `after` is 1 if upper ends are inclusive, else 0."""

    table: CsvTable
    places: Mapping[str, int]
    names: Names
    after: int

    @classmethod
    def of(cls, table: CsvTable, facts: str | Mapping[str, Dim], bind: Mapping[str, int]) -> _Reader:
        places = dict(table.columns)
        for name, same in _SAME.items():
            if name in places:
                places.setdefault(same, places[name])
        after = int("end" in places)
        if after and "upper" in places:
            raise TwoEnds(span=table.span(0, places["end"]), related=table.span(0, places["upper"])).error()
        if after:
            places["upper"] = places["end"]
        if "size_expr" in places:
            places["size"] = places["size_expr"]
        for column in ("id", "lower", "upper", "size"):
            if column not in places:
                near = nearest(column, places, 1)
                hint = f"is {near} meant to be it?" if near else ""
                raise MissingColumn(column, hint, span=table.span(0, len(table.header) - 1)).error()
        texts = [value_of(row[places["size"]]) for row in table.rows] if "size_expr" in places else []
        return cls(table, places, dims_for(texts, facts, bind), after)

    def requests(self, wrong: list[Message]) -> Iterator[Request]:
        """The requests of all lines; messages about malformed lines are added to `wrong`."""
        seen: dict[str, int] = {}
        sizes: dict[str, Size] = {}
        wide = [self.places[column] for column in ("alignment", "gaps", "offset") if column in self.places]
        for number, row in enumerate(self.table.rows, 1):
            try:
                yield self._request(number, row, seen, sizes, wide)
            except PlanError as error:
                wrong += error.messages
                if len(wrong) >= _MOST_REPORTED:
                    return

    def _request(
        self, number: int, row: Sequence[str], seen: dict[str, int], sizes: dict[str, Size], wide: Sequence[int]
    ) -> Request:
        name = value_of(row[self.places["id"]])
        if not name:
            column = self.table.header[self.places["id"]].strip()
            raise NamelessBuffer(column, span=self._span(number, "id")).error()
        if name in seen:
            here, there = self._span(number, "id"), self._span(seen[name], "id")
            raise DuplicateId("requests", name, span=here, related=there).error()
        seen[name] = number
        text = row[self.places["size"]]
        if "size_expr" in self.places:
            if text not in sizes:
                sizes[text] = self._size(number, text)
            self._compare(number, text)
            size = sizes[text]
        else:
            size = self._integer(number, "size")
        live: Interval = (self._integer(number, "lower"), self._integer(number, "upper") + self.after)
        try:
            if not any(row[place].strip() for place in wide):
                return Request(name, size, (live,))
            return self._wide(number, name, size, live)
        except PlanError as error:
            raise self._located(error, number) from None

    def _wide(self, number: int, name: str, size: Size, live: Interval) -> Request:
        """A request with gaps, an alignment, or a fixed offset."""
        spans = tuple(self._without_gaps(number, live)) if self._cell(number, "gaps") else (live,)
        align = self._integer(number, "alignment") if self._cell(number, "alignment") else 1
        fixed = self._integer(number, "offset") if self._cell(number, "offset") else None
        return Request(name, size, spans, align=align, fixed=fixed)

    def _cell(self, number: int, column: str) -> str:
        return value_of(self.table.rows[number - 1][self.places[column]]) if column in self.places else ""

    def _span(self, number: int, column: str) -> Span:
        return self.table.span(number, self.places[column])

    def _integer(self, number: int, column: str) -> int:
        text = self.table.rows[number - 1][self.places[column]]
        if text.isdecimal() and text.isascii() and len(text) < _SHORT:  # nearly all are: no need to look closer
            return int(text)
        text = value_of(text)
        if not _INTEGER.fullmatch(text):
            hint = "expressions stand in a column `size_expr`" if column == "size" and text else ""
            hint = "a number has 4000 digits at most" if len(text) > _MOST_DIGITS else hint
            name = self.table.header[self.places[column]].strip()
            shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
            raise BadNumber(shown, name, hint, span=self._span(number, column)).error()
        return int(text)

    def _size(self, number: int, text: str) -> Size:
        try:
            size = parse_size(value_of(text), self.names.sizes)
            if (
                isinstance(size, int) and size < 0
            ):  # zero, as at this value of a size with names, unless it is so at all
                is_always = prove_le(0, parse_size(value_of(text), self.names.plain)) is Proof.NO
                return size if is_always else 0
            return size
        except TirliteError as error:
            raise self._located(error, number) from None

    def _compare(self, number: int, text: str) -> None:
        """Compares the size with its values in columns like `size@4`, where there is one name that they can be of."""
        if len(self.names.plain) != 1 or not self._value_columns:
            return
        (dim,) = self.names.plain.values()
        size = parse_size(value_of(text), self.names.plain)
        for column, at in self._value_columns.items():
            value, told = evaluate(size, {dim: at}), self._integer(number, column)
            if value != told:
                here, there = self._span(number, column), self._span(number, "size")
                raise WrongValue(value_of(text), value, dim.name, at, told, span=here, related=there).error()

    @property
    def _value_columns(self) -> dict[str, int]:
        matches = ((name, _VALUE_COLUMN.fullmatch(name)) for name in self.places)
        return {name: int(match[1]) for name, match in matches if match}

    def _without_gaps(self, number: int, live: Interval) -> Iterator[Interval]:
        gaps = []
        for text in self._cell(number, "gaps").split():
            stretch, sign, _ = text.partition("@")
            match = _GAP.fullmatch(stretch)
            if match is None:
                raise BadGap(text, "not two numbers", span=self._span(number, "gaps")).error()
            low, high = int(match[1]), int(match[2]) + self.after
            if low >= high:
                raise BadGap(text, "it ends where it begins, or before", span=self._span(number, "gaps")).error()
            if sign:
                raise PartialGap(text, span=self._span(number, "gaps")).error()
            if not live[0] <= low < high <= live[1]:
                outside = f"the buffer lives from {live[0]} to {live[1] - self.after}"
                raise BadGap(text, outside, span=self._span(number, "gaps")).error()
            gaps.append((low, high))
        begin, end = live
        for low, high in sorted(gaps):
            if begin < low:
                yield begin, low
            begin = max(begin, high)
        if begin < end:
            yield begin, end

    def of_request(self, error: TirliteError) -> TirliteError:
        """The error, if it is about a request, with the place in the table that it is about."""
        name = getattr(error.messages[0], "id", None)
        ids = [value_of(row[self.places["id"]]) for row in self.table.rows]
        return self._located(error, ids.index(name) + 1) if name in ids else error

    def _located(self, error: TirliteError, number: int) -> TirliteError:
        """The error with the place in the table that it is about."""
        message = error.messages[0]
        column = _COLUMN_OF.get(message.code) or _COLUMN_OF.get(getattr(message, "what", ""), "size")
        placed = column if column in self.places else "upper"
        return message.error() if message.span else message.replaced(span=self._span(number, placed)).error()


class NotForCsv(PlanMessage):
    """A problem has parts for which tables have no columns.

    Example: `write_csv` of a problem with several pools.
    """

    title = "a CSV file cannot tell {what}"
    help = "`problem.to_json()` tells everything"


@public
def write_csv(problem: Problem, plan: Layout | None = None, target: str | PathLike[str] | TextIO | None = None) -> str:
    """The text of a CSV file with the problem, and where a plan is given its offsets; written to `target` if given.

    A problem that was read from CSV gives the same bytes again, and a plan adds or fills the last column `offset`, or
    `offset_expr` where sizes are symbolic. Offsets are addresses in one space: the pools of the plan stand one after
    the other, each aligned, with padding that `plan.total` counts if the problem is contiguous. See `read_csv` for the
    format. Raises PlanError for what it cannot tell: several memories, pairs in place.
    """
    demand("write_csv", "problem", problem, "a Problem", fits=isinstance(problem, Problem))
    demand("write_csv", "plan", plan, "a Plan, or None", fits=plan is None or isinstance(plan, Layout))
    is_target = target is None or is_path(target) or callable(getattr(target, "write", None))
    demand("write_csv", "target", target, "a path, or an open text file", fits=is_target)
    table = problem.table or _table_of(problem)
    if plan is not None:
        if len(plan.problem.memories) > 1:
            raise NotForCsv("in which of several memories a request lies").error()
        places, names = addresses(demand_whole(plan)), names_of(plan.problem.dims)
        fits = problem.by_id.keys() <= places.keys()
        demand("write_csv", "plan", plan, "a Plan of all requests of the problem", fits=fits)
        name = "offset_expr" if names else "offset"
        table = table.with_column(name, [size_json(places[request.id], names) for request in problem.requests])
    text = table.text()
    if isinstance(target, str | PathLike):
        Path(target).write_text(text, "utf-8", newline="")
    elif target is not None:
        target.write(text)
    return text


def _table_of(problem: Problem) -> CsvTable:
    """A table for a problem that was not read from one, with the columns that it needs."""
    requests = problem.requests
    if len(problem.memories) > 1:
        raise NotForCsv("in which of several memories a request lives").error()
    if problem.in_place:
        raise NotForCsv("which requests may share a place").error()
    names = names_of(problem.dims)
    size = "size_expr" if names else "size"
    columns = {
        "id": [_id_cell(request.id) for request in requests],
        "lower": [str(request.live[0][0]) for request in requests],
        "upper": [str(request.live[-1][1]) for request in requests],
        size: [cell_of(str(size_json(request.size, names))) for request in requests],
    }
    if any(request.align > 1 for request in requests):
        columns["alignment"] = [str(request.align) for request in requests]
    if any(len(request.live) > 1 for request in requests):
        columns["gaps"] = [_gaps(request) for request in requests]
    if any(request.fixed is not None for request in requests):
        columns["offset"] = ["" if request.fixed is None else str(request.fixed) for request in requests]
    return CsvTable(Source("<problem>", ()), tuple(columns), tuple(zip(*columns.values(), strict=True)), "\n")


def _id_cell(name: str) -> str:
    if not name or "\n" in name or "\r" in name:
        raise NotForCsv(f"the id {name!r}").error()
    return cell_of(name)


def _gaps(request: Request) -> str:
    pairs = zip(request.live, request.live[1:], strict=False)
    return " ".join(f"{high}-{low}" for (_, high), (low, _) in pairs)
