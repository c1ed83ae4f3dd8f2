"""Formats a plan: a summary as text, or JSON."""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tirlite.cli.command_error import CommandError, CommandMessage
from tirlite.cli.progress import FirstFit, interruptible
from tirlite.diag import CapacityError, TirliteError
from tirlite.plan import Plan, Problem, lower_bound
from tirlite.plan.layout import addresses
from tirlite.plan.report.witness import Witness, witness
from tirlite.show import counted, table
from tirlite.sizes import Size

if TYPE_CHECKING:
    from tirlite.plan import Plan, Problem

    Make: TypeAlias = Callable[[argparse.Namespace, FirstFit], tuple[Problem, Plan]]

# Narrower terminals get no chart.
_NARROWEST, _WIDEST, _CHART_LINES = 60, 160, 24


def plan_text(plan: Plan, name: str) -> str:
    """The figures, and a chart if the terminal is wide enough."""
    columns = shutil.get_terminal_size().columns
    parts = [table(("", ""), _figures(plan, name)).partition("\n")[2].partition("\n")[2]]
    if columns >= _NARROWEST:
        parts.append(plan.to_text(width=min(columns, _WIDEST) - 8, height=_CHART_LINES))
    return "\n\n".join(parts)


def plan_json(plan: Plan, seconds_to_fit: float | None = None) -> str:
    """One JSON object: figures, the number of buffers, and their offsets by id. Symbolic sizes are strings.

    `seconds_to_fit`: the seconds to the first plan that fits the capacity, if there is one.
    """
    places = addresses(plan)
    figures = {
        "total": _number(plan.total),
        "lower_bound": _number(plan.lower_bound),
        "gap": plan.gap,
        "proved_optimal": plan.proved_optimal,
        "seconds": plan.seconds,
        "strategy": plan.strategy,
        "buffers": len(plan.problem.requests),
        "capacity": _capacity(plan.problem),
        "seconds_to_fit": seconds_to_fit,
        "deterministic": plan.deterministic,
        "offsets": {request.id: _number(places[request.id]) for request in plan.problem.requests},
    }
    return json.dumps(figures, indent=1)


def failure_json(strategy: str, capacity: int | None, error: TirliteError, problem: Problem | None = None) -> str:
    """One JSON object: the same figures without a plan, and a witness if no plan is possible.

    Figures of an unknown problem are null.
    """
    found = None if problem is None else witness(problem)
    figures = {
        "total": None,
        "lower_bound": None if problem is None else _number(lower_bound(problem)),
        "gap": None,
        "proved_optimal": False,
        "seconds": None,
        "strategy": strategy,
        "buffers": None if problem is None else len(problem.requests),
        "capacity": capacity,
        "seconds_to_fit": None,
        "error": error.code,
        "impossible": None if problem is None else found is not None,
        "witness": found and _witness_json(found),
    }
    return json.dumps(figures, indent=1)


def _witness_json(found: Witness) -> dict[str, object]:
    fields: dict[str, object] = {"time": found.time, "bytes": found.bytes, "live": list(found.live)}
    return fields | ({"binding": dict(found.binding)} if found.binding else {})


def _figures(plan: Plan, name: str) -> list[tuple[str, str]]:
    gap = "depends on the names in sizes" if plan.gap is None else f"{plan.gap:.2%}"
    proved = ", proved optimal" if plan.proved_optimal else ""
    limit = _capacity(plan.problem)
    rows = [
        ("lifetimes", f"{name}: {counted(len(plan.problem.requests), 'buffer')}"),
        ("strategy", plan.strategy),
        ("total", f"{_bytes(plan.total)}{proved}"),
        ("lower bound", _bytes(plan.lower_bound)),
        ("gap", gap),
        ("capacity", "no limit" if limit is None else f"{_bytes(limit)}, kept"),
        ("seconds", f"{plan.seconds:.3f}" + ("" if plan.deterministic else ", ended by the clock")),
    ]
    if plan.problem.dims:
        ranges = ", ".join(_range_text(dim.name, dim.low, dim.high, dim.multiple_of) for dim in plan.problem.dims)
        rows.insert(1, ("valid for all", ranges))
    return rows


def _capacity(problem: Problem) -> int | None:
    """The capacity of the only memory."""
    return next((pool.capacity for pool in problem.memories.values()), None)


def _range_text(name: str, low: int, high: int | None, step: int) -> str:
    top = "" if high is None else f" <= {high}"
    return f"{low} <= {name}{top}" + (f", {name} % {step} == 0" if step > 1 else "")


def _bytes(size: Size) -> str:
    return f"{size:,} bytes" if isinstance(size, int) else f"{size} bytes"


def _number(size: Size) -> int | str:
    return size if isinstance(size, int) else str(size)


class NoTables(CommandMessage):
    """A folder has no tables of lifetimes.

    Example: `tirlite plan instances/`, where the tables have other names than `*.csv`.
    Fix: Give the folder that the tables are in.
    """

    title = "there is no table, *.csv, in `{path}`"


class OnePlanOnly(CommandMessage):
    """An output of one plan is asked for of many.

    Example: `tirlite plan instances/ --html plan.html`.
    Fix: Leave the option out, or plan one table.
    """

    title = "`{option}` is for one plan, and `{path}` is a folder"


def plan_folder(arguments: argparse.Namespace, make: Make) -> int:
    """Prints a line for each table in order of names, and returns the largest exit code.

    Ctrl-C ends the search for the current table with the best plan so far, and skips the others.
    """
    folder: Path = arguments.file
    for option in ("out", "svg", "html"):
        if getattr(arguments, option) is not None:
            raise OnePlanOnly(f"--{option}", str(folder)).error()
    files = sorted(folder.glob("*.csv"))
    if not files:
        raise NoTables(str(folder)).error()
    width = max(len(file.name) for file in files)
    if not arguments.json:
        print(f"{'table':<{width}}  {'bytes':>14}  {'lower bound':>14}  strategy")
    code = 0
    with interruptible() as interrupt:
        for file in files:
            try:
                line, fault = _planned(file, arguments, make, width)
            except KeyboardInterrupt:
                break
            code = max(code, fault)
            print(line, flush=True)
            if interrupt.is_set:
                break
    return interrupt.code or code


def _planned(file: Path, arguments: argparse.Namespace, make: Make, width: int) -> tuple[str, int]:
    """The line of a table, and its exit code."""
    one = argparse.Namespace(**{**vars(arguments), "file": file, "json": False})
    head = {"table": file.name}
    try:
        _, plan = make(one, FirstFit(arguments.capacity))
    except TirliteError as error:
        fault = 2 if isinstance(error, CommandError) else 3 if isinstance(error, CapacityError) else 1
        line = json.dumps({**head, "error": error.code}) if arguments.json else f"{file.name:<{width}}  {error.code}"
        return line, fault
    if arguments.json:
        found = {"total": str(plan.total), "lower_bound": str(plan.lower_bound), "strategy": plan.strategy}
        return json.dumps({**head, **found}), 0
    return f"{file.name:<{width}}  {plan.total!s:>14}  {plan.lower_bound!s:>14}  {plan.strategy}", 0
