"""States the problem of placing the tensors of a function, and whose place a result may take."""

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


def lenders(call: Call, values: Values) -> Iterator[Value]:
    """The tensors that the call reads just where it writes: never by another shape, or spread, or twice otherwise."""
    if isinstance(call.op, Op) and (call.op.is_elementwise or call.op.overwrites):
        candidates = call.args if call.op.is_elementwise else call.args[:1]
        for value in dict.fromkeys(value for arg in candidates for value in values.of[arg]):
            reads = [arg for arg in call.args if value in values.of[arg]]
            if all(arg in candidates and _is_alike(arg, call) for arg in reads):
                yield value


def _is_alike(arg: Expr, call: Call) -> bool:
    a, b = arg.type, call.type
    if not isinstance(a, TensorType) or not isinstance(b, TensorType):
        return False
    alike = a.dtype.bytes == b.dtype.bytes and a.rank == b.rank
    return alike and all(map(is_equal, a.shape, b.shape))
