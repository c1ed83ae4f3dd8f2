"""Goes through the steps of a loop on NumPy arrays, whoever computes them: the reference meaning, or native code."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tirlite.diag import KernelRunError, Message
from tirlite.graph.extents import values as values_at
from tirlite.graph.loop import LoopFunction
from tirlite.graph.types import TensorType, tensors
from tirlite.sizes import Dim, dims_of, evaluate

# It yields the operands of each step, is sent the step's results, and returns those of the loop.
Stepping: TypeAlias = "Generator[list[Any], tuple[Any, ...], tuple[Any, ...]]"


class LoopRoom(Message):
    """A loop in a graph makes more results of its steps than there were said to be.

    Example: `g.loop(step, limit, [x], most=4)`, where `limit` is 9 in a run.
    Fix: Say how many steps there can be, or limit them.
    """

    raises = KernelRunError
    title = "`{loop}` makes step {steps}, and there is room for the results of {most}"

    loop: str
    steps: int
    most: int


class UnlikeResults(Message):
    """A step of a loop gives a result of another shape than the steps before, with which it cannot be joined.

    Example: A step that gives the indices of what is not zero in its operand as a result of each step.
    Fix: Let the steps give results of one shape, or carry what differs.
    """

    raises = KernelRunError
    title = "step {steps} of `{loop}` gives a result of shape {shape}, those before gave {before}"

    loop: str
    steps: int
    shape: tuple[int, ...]
    before: tuple[int, ...]


def stepping(loop: LoopFunction, args: Sequence[Any], binding: Mapping[Dim, int]) -> Stepping:
    """What a loop comes to: its number, what it carries, and the results of its steps.

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
        going, *results = yield [np.array(number, np.int64), limit, going, *carried, *outside]
        carried, made = results[: loop.carried], results[loop.carried :]
        rows = rows or [_room(most, result.shape, each) for result, each in zip(made, kinds, strict=True)]
        for row, result in zip(rows, made, strict=True):
            if row.shape[1:] != result.shape:
                raise UnlikeResults(loop.name, number + 1, result.shape, row.shape[1:], span=loop.span).error()
            row[number] = result
        number += 1
    rows = rows or [_room(most, _told(of, binding), of) for of in tensors(loop.result)[1 + loop.carried :]]
    return np.array(number, np.int64), *carried, *rows


def _told(of: TensorType, binding: Mapping[Dim, int]) -> tuple[int, ...]:
    """The shape of one row as far as the call tells it; extents that steps would have told are 0."""
    return tuple(evaluate(each, binding) if binding.keys() >= set(dims_of(each)) else 0 for each in of.shape[1:])


def _room(most: int, shape: tuple[int, ...], of: TensorType) -> npt.NDArray[Any]:
    return np.zeros((most, *shape), of.dtype.stored)
