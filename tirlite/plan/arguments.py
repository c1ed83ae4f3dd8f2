"""Checks arguments of public functions, and finds the values that they give to dims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from os import PathLike
from typing import SupportsIndex, TypeVar

from tirlite.diag import PlanMessage
from tirlite.groups import by_key
from tirlite.show import shown
from tirlite.sizes import Dim, as_size
from tirlite.sizes.poly import atom_of


class PlanArgument(PlanMessage):
    """The planner was given something of a kind that it does not take, or a search without bounds that make sense.

    Example: `solve([Request("a", 4, (0, 2))])`.
    Fix: Give what the message asks for: here `solve(Problem((Request("a", 4, (0, 2)),)))`.
    """

    title = "`{name}` of `{function}` takes {wanted}, and is given {given}"


# Columns, lines or pixels of a chart.
_LARGEST_CHART = 100_000


def demand(function: str, name: str, given: object, wanted: str, *, fits: bool) -> None:
    """Raises PlanError unless `given` fits the parameter `name` of a function."""
    if not fits:
        raise PlanArgument(name, function, wanted, shown(given)[:60]).error()


def is_path(given: object) -> bool:
    """Whether this may name a file."""
    return issubclass(type(given), (str, PathLike)) and isinstance(given, str | PathLike) and "\0" not in str(given)


def demand_extents(function: str, **extents: object) -> None:
    """Raises PlanError unless a chart can be that wide and high."""
    for name, given in extents.items():
        fits = issubclass(type(given), int) and isinstance(given, int) and 1 <= given <= _LARGEST_CHART
        demand(function, name, given, f"an integer from 1 to {_LARGEST_CHART}", fits=fits)


K = TypeVar("K")


class BadBinding(PlanMessage):
    """A dim is bound to a value that contradicts its facts.

    Example: `--facts 'N%8==0' --bind N=4`.
    Fix: Bind it to a value that the facts allow, or drop the fact.
    """

    title = "`{name}` cannot be {value}"
    help = "it is {told}"


def refuse_contrary(dim: Dim, value: int) -> None:
    """Raises PlanError for a value that the facts of the dim do not allow."""
    if value < dim.low or (dim.high is not None and value > dim.high) or value % dim.multiple_of:
        told = f"at least {dim.low}" + ("" if dim.high is None else f" and at most {dim.high}")
        told += f", a multiple of {dim.multiple_of}" if dim.multiple_of > 1 else ""
        raise BadBinding(dim.name, value, told).error()


def bound(
    function: str, dims: Iterable[Dim], given: Mapping[K, SupportsIndex] | None, named: Mapping[str, SupportsIndex]
) -> dict[Dim, int]:
    """The given values of `dims`; keys are dims, their symbols in sympy, or their names.

    A dim is its name here. Names that are not among `dims` are ignored, as not all dims of a kernel are in its plan. 0
    is allowed for dims of at least 1 as well, for empty arrays. Raises PlanError for what is not a dim or not an
    integer, and for a value that contradicts the facts.
    """
    demand(function, "binding", given, "a dict from dims to integers", fits=given is None or isinstance(given, Mapping))
    by_name = by_key((dim.name, dim) for dim in dims)
    values: dict[Dim, int] = {}
    for key, value in (*(given or {}).items(), *named.items()):
        name = _name(function, key)
        if isinstance(value, bool) or not isinstance(value, SupportsIndex):
            raise PlanArgument(name, function, "an integer", shown(value)[:60]).error()
        for dim in by_name.get(name, ()):
            if index(value) or dim.min != 1:
                refuse_contrary(dim, index(value))
            values[dim] = index(value)
    return values


def _name(function: str, key: object) -> str:
    if isinstance(key, str):
        return key
    if (dim := dim_of(key)) is None:
        raise PlanArgument("binding", function, "dims, or their names, as keys", shown(key)[:60]).error()
    return dim.name


def dim_of(given: object) -> Dim | None:
    """The dim that is given: by itself, by the variable of `tl.dim`, or by a symbol of sympy; None for all else."""
    try:
        return next(iter(atom_of(as_size(given), Dim)), None)
    except TypeError:
        return None
