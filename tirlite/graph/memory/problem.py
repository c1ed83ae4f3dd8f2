"""States the problem of placing the tensors of a function."""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.diag import public
from tirlite.graph.expr import FunctionNode
from tirlite.graph.memory.lenders import lenders
from tirlite.graph.memory.lifetimes import Lifetimes, lifetimes
from tirlite.graph.memory.values import Values, values_of
from tirlite.graph.program import Program, program
from tirlite.plan import Pool, Problem, Request


@public
def memory_problem(
    function: FunctionNode, *, views: bool = False, in_place: bool = False, inner: bool = False
) -> Problem:
    """One request for each tensor of the function, those of functions that it calls apart.

    Parameters and constants are among them, and live for ever. Each device is a pool of its own. With `views`,
    operators that only change the shape have no tensor of their own. With `in_place`, the result of an element-wise
    operator or a normalization may take the place of an operand of its shape that dies there. With `inner`, only what
    lies between operators is counted: neither parameters and constants, nor results.
    """
    made = program(function)
    return problem_of(made, values_of(made, views=views), in_place=in_place, inner=inner)


def problem_of(made: Program, values: Values, *, in_place: bool = False, inner: bool = False) -> Problem:
    """The problem of a program whose tensors are known."""
    found = lifetimes(made, values)
    order = dict.fromkeys(value for group in values.of.values() for value in group)
    if inner:
        order = {v: None for v in order if not v.pinned and v not in values.of[made.function.body]}
    requests = tuple(Request(v.id, v.size, found.live[v], pools=(_pool(v.device),)) for v in order)
    devices = sorted({value.device for value in order})
    known = {value.id for value in order}
    pairs = tuple(pair for pair in _pairs(made, values, found) if known.issuperset(pair)) if in_place else ()
    return Problem(requests, tuple(Pool(_pool(device)) for device in devices), pairs)


def _pool(device: int) -> str:
    """The name of a device's memory."""
    return f"device {device}" if device else "memory"


def _pairs(made: Program, values: Values, found: Lifetimes) -> Iterator[tuple[str, str]]:
    """(result, operand) of each call in the place of an operand that dies there."""
    for step in made.steps():
        if values.is_computed(step):
            for source in lenders(step, values):
                if found.dies(source, step):
                    yield values.of[step][0].id, source.id
