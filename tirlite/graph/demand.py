"""Refuses what is given as the function of a graph and is something else, by an error that says what to give."""

from __future__ import annotations

from tirlite.diag import CallTypeError, Message
from tirlite.graph.expr import FunctionNode


class NoGraphFunction(Message):
    """Something else than the function of a graph is to be compiled, evaluated or planned.

    Example: `tl.graph.compile(g)`, where `g` is a Builder.
    Fix: Give what `g.function(y)` or `tl.from_onnx` returns.
    """

    code = "no-graph-function"
    raises = CallTypeError
    title = "the function of a graph is wanted here, and this is a {given}"
    help = "{advice}"

    given: str
    advice: str


def demand_function(given: object) -> None:
    """Returns if `given` is the function of a graph; raises CallTypeError otherwise."""
    # By its type: a class may say anything of `__class__`.
    if issubclass(type(given), FunctionNode):
        return
    has_one = issubclass(type(getattr(given, "function", None)), FunctionNode)
    advice = "give its `.function`" if has_one else "`g.function(y)` makes one of a Builder, `tl.from_onnx` of a model"
    raise NoGraphFunction(type(given).__name__, advice).error()
