"""A function in, the problem of placing its tensors out."""

from __future__ import annotations

from tirlite.diag import public
from tirlite.graph.expr import FunctionNode
from tirlite.graph.memory.lifetimes import lifetimes
from tirlite.graph.memory.values import Value, Values, values_of
from tirlite.graph.program import Program, program
from tirlite.plan import Pool, Problem, Request


@public
def memory_problem(function: FunctionNode) -> Problem:
    """One request for each tensor of the function, those of functions that it calls apart.

    Parameters and constants are among them, and live for ever. Each device is a pool of its own.
    """
    made = program(function)
    return problem_of(made, values_of(made))


def problem_of(made: Program, values: Values) -> Problem:
    """The problem of a program whose tensors are known."""
    live = lifetimes(made, values)
    order = dict.fromkeys(value for group in values.of.values() for value in group)
    requests = tuple(Request(v.id, v.size, live[v], pools=(pool_of(v),)) for v in order)
    devices = sorted({value.device for value in order})
    return Problem(requests, tuple(Pool(_pool(device)) for device in devices))


def pool_of(value: Value) -> str:
    """The name of the memory that a tensor lives in."""
    return _pool(value.device)


def _pool(device: int) -> str:
    return f"device {device}" if device else "memory"
