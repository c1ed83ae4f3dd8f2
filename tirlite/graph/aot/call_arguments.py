"""Puts the arguments of a call of a graph in order: arrays by position and by name, and those for its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tirlite.diag import CallTypeError, Message
from tirlite.graph.aot.names import name_of
from tirlite.graph.arguments import GraphArgumentCount
from tirlite.graph.expr import FunctionNode


class UnknownGraphArgument(Message):
    """A graph was called with an argument of a name that it does not have, or that was given already.

    Example: `net(y=array)` where the only input is `x`; `net(array, x=array)`.
    Fix: Give one array for each of the names that the message lists.
    """

    raises = CallTypeError
    title = "`{function}` {why} `{name}`; its {what} are {known}"


class BadGraphOut(Message):
    """`out` of a call of a graph is not an array for each of its results.

    Example: `net(x, out=(a, b))` where there is one result; `out=` where a run finds the extents of the results.
    """

    raises = CallTypeError
    title = "`out` of `{function}`: {why}"
    help = "give an array for the one result, a tuple of arrays, one for each, or a dict by their names"


def in_order(function: FunctionNode, arrays: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
    """One value for each parameter: those without a name, then those by name, as the model or as Python writes it.

    Raises CallTypeError where that leaves one out, or gives another.
    """
    params = function.params
    if not named:
        if len(arrays) != len(params):
            raise GraphArgumentCount(function.name, len(params), len(arrays)).error()
        return arrays
    places = {name: place for place, param in enumerate(params) for name in (param.name, name_of(param.name))}
    known = ", ".join(param.name for param in params)
    found: dict[int, Any] = dict(enumerate(arrays))
    for name, value in named.items():
        place = places.get(name)
        if place is None or place in found:
            why = "has no input" if place is None else "was given another value for"
            raise UnknownGraphArgument(function.name, why, name, "inputs", known).error()
        found[place] = value
    if len(found) != len(params) or len(arrays) > len(params):
        raise GraphArgumentCount(function.name, len(params), len(found)).error()
    return [found[place] for place in range(len(params))]


def results_given(function: FunctionNode, outputs: Sequence[str], out: Any) -> dict[str, Any]:
    """The arrays that results are to be written to, by the names of `main`'s outputs.

    Raises CallTypeError where `out` has others than there are results.
    """
    if out is None:
        return {}
    if isinstance(out, Mapping):
        names = dict(zip(function.outputs or outputs, outputs, strict=False))
        for name in out:
            if name not in names and name not in outputs:
                raise UnknownGraphArgument(function.name, "has no result", name, "results", ", ".join(names)).error()
        return {names.get(name, str(name)): array for name, array in out.items() if array is not None}
    given = out if isinstance(out, tuple | list) else (out,)
    if len(given) != len(outputs):
        raise BadGraphOut(function.name, f"there are {len(outputs)} results, and {len(given)} arrays").error()
    return {name: array for name, array in zip(outputs, given, strict=True) if array is not None}
