"""Loops: functions of one step, each run on the results of the step before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias

import numpy as np

from tirlite.diag import GraphMessage, KernelRunError, Message
from tirlite.graph.expr import FunctionNode
from tirlite.graph.extents import values as values_at
from tirlite.graph.types import Array, TensorType, TupleType, Type, tensors
from tirlite.ir import Steps, i64
from tirlite.record import record
from tirlite.sizes import Dim, Size, dims_of, evaluate


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
    """The step of a loop. Parameters: the step number, a limit, the condition, `carried` values, and invariant values.

    The body is a tuple: the next condition, the next carried values, and the step's results. A call repeats the step
    from the given number on, while that is below the limit and the condition is true. It returns the number after the
    last step, the carried values, and each result of all steps along a new first axis of extent `most`.

    A loop that `changes` extents has the types of its carried values and results in `behind`, with dims of their own
    for these extents; each step binds the dims of its parameters anew.
    """

    carried: int = field(default=0, kw_only=True)
    most: Size = field(default=0, kw_only=True)
    behind: tuple[Type, ...] = field(default=(), kw_only=True)

    @property
    def changes(self) -> bool:
        """Whether carried values or results have run-time extents."""
        return bool(self.behind)

    @property
    def result(self) -> Type:
        """The type of a call's result."""
        if self.behind:
            return TupleType((TensorType((), i64), *self.behind))
        _, *others = self.parts
        rows = [TensorType((self.most, *each.shape), each.dtype) for each in others[self.carried :]]
        return TupleType((TensorType((), i64), *others[: self.carried], *rows))

    @property
    def parts(self) -> tuple[TensorType, ...]:
        """The types of a step's results: the condition, the carried values, and further results."""
        return tensors(self.body.type)

    @property
    def step(self) -> FunctionNode:
        """One step as an ordinary function."""
        return FunctionNode(f"{self.name}_step", self.params, self.body, span=self.span)


# Takes a step: its results, for its operands.
RunStep: TypeAlias = "Callable[[list[Any]], Steps[tuple[Any, ...]]]"


class LoopRoom(Message):
    """A loop in a graph makes more results of its steps than there were said to be.

    Example: `g.loop(step, limit, [x], most=4)`, where `limit` is 9 in a run.
    Fix: Say how many steps there can be, or limit them.
    """

    raises = KernelRunError
    title = "`{loop}` makes step {steps}, and there is room for the results of {most}"


class UnlikeResults(Message):
    """A step of a loop gives a result of another shape than the steps before, with which it cannot be joined.

    Example: A step that gives the indices of what is not zero in its operand as a result of each step.
    Fix: Let the steps give results of one shape, or carry what differs.
    """

    raises = KernelRunError
    title = "step {steps} of `{loop}` gives a result of shape {shape}, those before gave {before}"


def stepping(
    loop: LoopFunction, args: Sequence[Any], binding: Mapping[Dim, int], step: RunStep
) -> Steps[tuple[Any, ...]]:
    """The results of a loop: the number reached, the carried values, and the rows of its steps.

    Raises KernelRunError for a step for whose results there is no room, and where they have several shapes.
    """
    first, limit, going, *others = args
    carried, outside = others[: loop.carried], others[loop.carried :]
    kinds = loop.parts[1 + loop.carried :]
    (most,) = values_at((loop.most,), binding)
    rows = [] if loop.changes else [_room(most, values_at(each.shape, binding), each) for each in kinds]
    number, last = int(first), int(limit)
    while number < last and going:
        if kinds and number >= most:
            raise LoopRoom(loop.name, number + 1, most, span=loop.span).error()
        going, *results = yield step([np.array(number, np.int64), limit, going, *carried, *outside])
        carried, made = results[: loop.carried], results[loop.carried :]
        rows = rows or [_room(most, result.shape, each) for result, each in zip(made, kinds, strict=True)]
        for row, result in zip(rows, made, strict=True):
            if row.shape[1:] != result.shape:
                raise UnlikeResults(number + 1, loop.name, result.shape, row.shape[1:], span=loop.span).error()
            row[number] = result
        number += 1
    rows = rows or [_room(most, _told(of, binding), of) for of in tensors(loop.result)[1 + loop.carried :]]
    return np.array(number, np.int64), *carried, *rows


def _told(of: TensorType, binding: Mapping[Dim, int]) -> tuple[int, ...]:
    """The shape of one row as far as the call determines it; extents that only steps determine are 0."""
    return tuple(evaluate(each, binding) if binding.keys() >= set(dims_of(each)) else 0 for each in of.shape[1:])


def _room(most: int, shape: tuple[int, ...], of: TensorType) -> Array:
    return np.zeros((most, *shape), of.dtype.stored)
