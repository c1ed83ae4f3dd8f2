"""Functions: what graphs are, with their text."""

from __future__ import annotations

from tirlite.graph.expr import FunctionNode
from tirlite.graph.printer import text
from tirlite.record import record


@record(eq=False, repr=False)
class Function(FunctionNode):
    """Parameters and a body over them; `print` shows one line for each expression, in the order of computation.

    A primitive one stands for one kernel: planners do not look inside. `outputs` names the result, or the fields of a
    result that is a tuple; it is empty where nobody named them. `demands` lists what operators ask of extents beyond
    what is proved of them, which each call is checked for. Dims in the types of its parameters stand for whatever
    a call gives there.
    """

    def __str__(self) -> str:
        return text(self)

    def __repr__(self) -> str:
        params = ", ".join(f"{param.name}: {param.type}" for param in self.params)
        return f"<Function {self.name}({params}) -> {self.result}>"
