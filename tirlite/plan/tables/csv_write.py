"""Writes problems and plans as CSV: the file that was read, with the offsets of a plan in it."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TextIO

from tirlite.diag import Message, PlanError, Source, public
from tirlite.plan.arguments import demand, is_path
from tirlite.plan.layout import Layout, addresses
from tirlite.plan.problem import Problem
from tirlite.plan.request import Request
from tirlite.plan.tables.csv_table import CsvTable, cell_of
from tirlite.plan.tables.problem_json import names_of, size_json


class NotForCsv(Message):
    """A problem has parts for which tables have no columns.

    Example: `write_csv` of a problem with several pools.
    Fix: Use `problem.to_json()`, which tells everything.
    """

    code = "not-for-csv"
    raises = PlanError
    title = "a CSV file cannot tell {what}"
    help = "`problem.to_json()` tells everything"

    what: str


@public
def write_csv(problem: Problem, plan: Layout | None = None, target: str | PathLike[str] | TextIO | None = None) -> str:
    """The text of a CSV file with the problem, and where a plan is given its offsets; written to `target` if given.

    A problem that was read from CSV gives the same bytes again, and a plan adds or fills the last column `offset`, or
    `offset_expr` where sizes are symbolic. Offsets are addresses in one space: the pools of the plan stand one behind
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
        places, names = addresses(plan).of, names_of(plan.problem.dims)
        name = "offset_expr" if names else "offset"
        table = table.with_column(name, [size_json(places[request.id], names) for request in problem.requests])
    text = table.text()
    if isinstance(target, str | PathLike):
        Path(target).write_text(text, "utf-8", newline="")
    elif target is not None:
        target.write(text)
    return text


def _table_of(problem: Problem) -> CsvTable:
    """The table of a problem that never was one, with the columns that it needs."""
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
