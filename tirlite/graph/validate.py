"""Checks a function: variables, dims and names of outputs.

Types need no check here: each expression infers its type when it is created.
"""

from __future__ import annotations

from tirlite.diag import GraphError, GraphMessage, Span, public
from tirlite.graph.demand import demand_function
from tirlite.graph.expr import Call, FunctionNode, If, callees_first
from tirlite.graph.loop import LoopFunction
from tirlite.graph.program import program
from tirlite.graph.run_dims import RunDim
from tirlite.graph.types import TupleType
from tirlite.sizes import Dim, Size, dims_of
from tirlite.sizes.dim import contradiction
from tirlite.sizes.poly import atom_of


class UnknownGraphDim(GraphMessage):
    """A graph uses a dim that no call gives a value to.

    Example: `g.broadcast_to(x, [m, 4])` where `m` is not an extent of an input.
    """

    title = "the dim `{dim}` of `{where}` is not known when `{function}` is called"
    help = "make it an extent of an input by itself, as `n` is in `tl.f32[n, 2 * n]`"


class OutputNames(GraphMessage):
    """The names of a function's outputs do not fit its result.

    Example: `Function("f", (x,), x, outputs=("a", "b"))`.
    Fix: Give each field of the result a name of its own, or give no names at all.
    """

    code = "graph-output-names"
    title = "`{function}` returns {count} values and names {names}"
    help = "give each output a name of its own, or give none"


@public
def validate(function: FunctionNode) -> None:
    """Raises GraphError if the function, or one that it calls, is ill-formed.

    Each variable must be bound where it is used, each dim must be the whole extent of some parameter's axis, and names
    of outputs must be unique and fit the result.
    """
    demand_function(function)
    for each in callees_first(function):
        _check_outputs(each)
        _check_body(each)


def _check_outputs(function: FunctionNode) -> None:
    count = len(function.result.fields) if isinstance(function.result, TupleType) else 1
    names = function.outputs
    if names and (len(names) not in (count, 1) or len(set(names)) != len(names)):
        raise OutputNames(function.name, count, ", ".join(f"`{name}`" for name in names), span=function.span).error()


def _check_body(function: FunctionNode) -> None:
    known = {dim for extent in function.extents for dim in atom_of(extent, Dim)}
    for param in function.params:
        _check_dims(function, param.name, param.sizes, known, param.span)
    if isinstance(function, LoopFunction):
        _check_dims(function, function.name, [function.most], known, function.span)
    for demand in function.demands:
        if not demand.is_told:
            _check_dims(function, demand.asked_by, [demand.left, demand.right], known, demand.span)
    message = contradiction(sorted(known, key=lambda dim: dim.ident))
    if message is not None:
        raise GraphError(message.replaced(span=function.span))
    for step in program(function).steps():
        if isinstance(step, Call | If):
            known |= step.tells
        where = step.op.name if isinstance(step, Call) else type(step).__name__.lower()
        _check_dims(function, where, step.sizes, known, step.span)


def _check_dims(function: FunctionNode, where: str, sizes: list[Size], known: set[Dim], span: Span | None) -> None:
    for size in sizes:
        for dim in dims_of(size):
            if isinstance(dim, RunDim):
                _check_dims(function, where, [*dim.limits], known, span)
            elif dim not in known:
                raise UnknownGraphDim(dim.name, where, function.name, span=span).error()
