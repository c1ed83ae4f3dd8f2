"""Checks an argument of a public function of the planner: an error says what the function takes, if it is none."""

from __future__ import annotations

from os import PathLike

from tirlite.diag import Message, PlanError
from tirlite.show import shown


class PlanArgument(Message):
    """The planner was given something of another kind than it takes, or a search without bounds that make sense.

    Example: `solve([Request("a", 4, (0, 2))])`.
    Fix: Give what the message asks for: here `solve(Problem((Request("a", 4, (0, 2)),)))`.
    """

    code = "plan-argument"
    raises = PlanError
    title = "`{name}` of `{function}` takes {wanted}, and is given {given}"

    function: str
    name: str
    wanted: str
    given: str


# Columns, lines or pixels of a chart.
_LARGEST_CHART = 100_000


def demand(function: str, name: str, given: object, wanted: str, *, fits: bool) -> None:
    """Raises PlanError unless `given` fits the parameter `name` of a function."""
    if not fits:
        raise PlanArgument(function, name, wanted, shown(given)[:60]).error()


def is_path(given: object) -> bool:
    """Whether this may name a file."""
    return issubclass(type(given), (str, PathLike)) and isinstance(given, str | PathLike) and "\0" not in str(given)


def demand_extents(function: str, **extents: object) -> None:
    """Raises PlanError unless a chart can be that wide and high."""
    for name, given in extents.items():
        fits = issubclass(type(given), int) and isinstance(given, int) and 1 <= given <= _LARGEST_CHART
        demand(function, name, given, f"an integer from 1 to {_LARGEST_CHART}", fits=fits)
