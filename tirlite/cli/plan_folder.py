"""Plans each table of a folder, and prints a line for each as soon as it is planned."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tirlite.cli.command_error import CommandError, CommandMessage
from tirlite.cli.progress import FirstFit, hearing
from tirlite.diag import CapacityError, TirliteError

if TYPE_CHECKING:
    from tirlite.plan import Plan, Problem

    Make: TypeAlias = Callable[[argparse.Namespace, FirstFit], tuple[Problem, Plan]]


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
    """A line for each table, in the order of their names; the exit code is the largest of those of the tables.

    Ctrl-C ends the search for one with the best plan so far, and all behind it.
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
    with hearing() as heard:
        for file in files:
            try:
                line, fault = _planned(file, arguments, make, width)
            except KeyboardInterrupt:
                break
            code = max(code, fault)
            print(line, flush=True)
            if heard.is_set:
                break
    return heard.code or code


def _planned(file: Path, arguments: argparse.Namespace, make: Make, width: int) -> tuple[str, int]:
    """The line of a table, and its exit code."""
    one = argparse.Namespace(**{**vars(arguments), "file": file, "json": False})
    told = {"table": file.name}
    try:
        _, plan = make(one, FirstFit(arguments.capacity))
    except TirliteError as error:
        fault = 2 if isinstance(error, CommandError) else 3 if isinstance(error, CapacityError) else 1
        line = json.dumps({**told, "error": error.code}) if arguments.json else f"{file.name:<{width}}  {error.code}"
        return line, fault
    if arguments.json:
        found = {"total": str(plan.total), "lower_bound": str(plan.lower_bound), "strategy": plan.strategy}
        return json.dumps({**told, **found}), 0
    return f"{file.name:<{width}}  {plan.total!s:>14}  {plan.lower_bound!s:>14}  {plan.strategy}", 0
