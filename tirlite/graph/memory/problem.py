"""A function in, the problem of placing its tensors out."""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.diag import public
from tirlite.graph.expr import Call, Expr, FunctionNode
from tirlite.graph.extents import is_equal
from tirlite.graph.memory.lifetimes import Lifetimes, lifetimes
from tirlite.graph.memory.values import Value, Values, values_of
from tirlite.graph.op import Op
from tirlite.graph.program import Program, program
from tirlite.graph.types import TensorType
from tirlite.plan import Pool, Problem, Request


@public
def memory_problem(function: FunctionNode, *, views: bool = False, in_place: bool = False) -> Problem:
    """One request for each tensor of the function, those of functions that it calls apart.

    Parameters and constants are among them, and live for ever. Each device is a pool of its own. With `views`,
    operators that only change the shape have no tensor of their own. With `in_place`, the result of an element-wise
    operator may take the place of an operand of its shape that dies there.
    """
    made = program(function)
    return problem_of(made, values_of(made, views=views), in_place=in_place)


def problem_of(made: Program, values: Values, *, in_place: bool = False) -> Problem:
    """The problem of a program whose tensors are known."""
    found = lifetimes(made, values)
    order = dict.fromkeys(value for group in values.of.values() for value in group)
    requests = tuple(Request(v.id, v.size, found.live[v], pools=(_pool(v.device),)) for v in order)
    devices = sorted({value.device for value in order})
    pairs = tuple(_pairs(made, values, found)) if in_place else ()
    return Problem(requests, tuple(Pool(_pool(device)) for device in devices), pairs)


def _pool(device: int) -> str:
    """The name of a device's memory."""
    return f"device {device}" if device else "memory"


def _pairs(made: Program, values: Values, found: Lifetimes) -> Iterator[tuple[str, str]]:
    """(result, operand) of each element-wise call whose operand dies there."""
    for step in made.steps():
        if values.is_computed(step) and isinstance(step.op, Op) and step.op.is_elementwise:
            (result,) = values.of[step]
            for source in dict.fromkeys(values.args(step)):
                if found.dies(source, step) and _is_read_in_step(step, source, values):
                    yield result.id, source.id


def _is_read_in_step(call: Call, source: Value, values: Values) -> bool:
    """Whether the call reads each element of the tensor just where it writes: never by another shape, or spread."""
    reads = [arg for arg in call.args if source in values.of[arg]]
    return all(_is_alike(arg, call) for arg in reads)


def _is_alike(arg: Expr, call: Call) -> bool:
    a, b = arg.type, call.type
    if not isinstance(a, TensorType) or not isinstance(b, TensorType):
        return False
    alike = a.dtype.bytes == b.dtype.bytes and a.rank == b.rank
    return alike and all(map(is_equal, a.shape, b.shape))
