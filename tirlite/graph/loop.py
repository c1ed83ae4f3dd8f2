"""Loops: functions of one step, which a call runs again and again, on what the step before left."""

from __future__ import annotations

from dataclasses import field

from tirlite.diag import GraphMessage
from tirlite.graph.expr import FunctionNode
from tirlite.graph.types import TensorType, TupleType, Type, tensors
from tirlite.ir import i64
from tirlite.record import record
from tirlite.sizes import Size


class LoopSteps(GraphMessage):
    """The steps of a loop in a graph do not give what the next ones take, or what is to be joined.

    Example: `g.loop(step, n, [x])`, where `x` is `f32[n]` and a step makes `f32[2*n]` of it.
    Fix: Carry values of one type; make results of steps of one shape, and say how many steps there are at most.
    """

    title = "a step of `{loop}` {why}"
    help = "carried values keep their types from step to step, and results of all steps have one shape"

    loop: str
    why: str


@record(eq=False, repr=False)
class LoopFunction(FunctionNode):
    """A step: of its number, a limit, whether to go on, `carried` values, and others that stay as they are.

    The body is a tuple: whether to go on, the carried values behind the step, and results of the step. A call runs it
    from the number given on, while that is below the limit and the last step said so. It gives the number that it came
    to, the carried values, and for each result those of all steps, along a new first axis with room for `most`.

    A loop that `changes` extents tells the types of all that stands `behind` it, with dims of their own for these; the
    dims of its parameters are bound by each step anew.
    """

    carried: int = field(default=0, kw_only=True)
    most: Size = field(default=0, kw_only=True)
    behind: tuple[Type, ...] = field(default=(), kw_only=True)

    @property
    def changes(self) -> bool:
        """Whether steps find extents of what is carried, or of their results."""
        return bool(self.behind)

    @property
    def result(self) -> Type:
        """The type of what a call gives."""
        if self.behind:
            return TupleType((TensorType((), i64), *self.behind))
        _, *others = self.parts
        rows = [TensorType((self.most, *each.shape), each.dtype) for each in others[self.carried :]]
        return TupleType((TensorType((), i64), *others[: self.carried], *rows))

    @property
    def parts(self) -> tuple[TensorType, ...]:
        """The types of what a step gives."""
        return tensors(self.body.type)

    @property
    def step(self) -> FunctionNode:
        """One step, as a function like any other."""
        return FunctionNode(f"{self.name}_step", self.params, self.body, span=self.span)
