"""Refuses an argument that is not the function of a graph, by an error that says what to give."""

from __future__ import annotations

from tirlite.diag import CallTypeError, GraphMessage, Message
from tirlite.graph.expr import Call, FunctionNode, If, operands_first
from tirlite.graph.loop import LoopFunction


class NoGraphFunction(Message):
    """Something other than the function of a graph is to be compiled, evaluated or planned.

    Example: `tl.graph.compile(g)`, where `g` is a Builder.
    Fix: Give what `g.function(y)` or `tl.from_onnx` returns.
    """

    raises = CallTypeError
    title = "the function of a graph is wanted here, and this is a {given}"
    help = "{advice}"


class ExtentsOfRun(GraphMessage):
    """A graph with run-time extents is given to what takes sizes that a call knows.

    Example: `tl.graph.StaticRuntime(f)`, where `f` returns the indices of what is not zero in its operand.
    Fix: `tl.graph.compile(f)` runs it, `tl.graph.evaluate(f, ...)` tells what it means.
    """

    title = "{what} needs sizes, but the extents of {type} in `{function}` are known only at run time"
    help = "`tl.graph.compile` and `tl.graph.evaluate` take such a function"


def demand_known_extents(function: FunctionNode, what: str) -> None:
    """Returns if a call of the function knows all extents in it; raises GraphError otherwise."""
    demand_function(function)
    for expr in operands_first(function.body):
        if isinstance(expr, Call) and isinstance(expr.op, LoopFunction) and expr.op.changes:
            raise ExtentsOfRun(what, f"the loop `{expr.op.name}`", function.name, span=expr.span).error()
        if isinstance(expr, Call | If) and expr.sources:
            raise ExtentsOfRun(what, str(expr.type), function.name, span=expr.span).error()


def demand_function(given: object) -> None:
    """Returns if `given` is the function of a graph; raises CallTypeError otherwise."""
    # By its type: a class may say anything of `__class__`.
    if issubclass(type(given), FunctionNode):
        return
    has_one = issubclass(type(getattr(given, "function", None)), FunctionNode)
    advice = "give its `.function`" if has_one else "`g.function(y)` makes one of a Builder, `tl.from_onnx` of a model"
    raise NoGraphFunction(type(given).__name__, advice).error()
