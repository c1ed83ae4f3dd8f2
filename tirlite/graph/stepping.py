"""Goes through the steps of a loop on NumPy arrays, whoever computes them: the reference meaning, or native code."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from tirlite.diag import KernelRunError, Message
from tirlite.graph.extents import values as values_at
from tirlite.graph.loop import LoopFunction
from tirlite.sizes import Dim

# It yields the operands of each step, is sent the step's results, and returns those of the loop.
Stepping: TypeAlias = "Generator[list[Any], tuple[Any, ...], tuple[Any, ...]]"


class LoopRoom(Message):
    """A loop in a graph makes more results of its steps than it was said that there are.

    Example: `g.loop(step, limit, [x], most=4)`, where `limit` is 9 in a run.
    Fix: Say how many steps there can be, or limit them.
    """

    code = "loop-room"
    raises = KernelRunError
    title = "`{loop}` makes step {steps}, and there is room for the results of {most}"

    loop: str
    steps: int
    most: int


def stepping(loop: LoopFunction, args: Sequence[Any], binding: Mapping[Dim, int]) -> Stepping:
    """What a loop comes to: its number, what it carries, and the results of its steps.

    Raises KernelRunError for a step for whose results there is no room.
    """
    first, limit, going, *others = args
    carried, outside = others[: loop.carried], others[loop.carried :]
    _, *parts = loop.parts
    shapes = [values_at((loop.most, *each.shape), binding) for each in parts[loop.carried :]]
    rows = [np.zeros(shape, each.dtype.stored) for shape, each in zip(shapes, parts[loop.carried :], strict=True)]
    number, last = int(first), int(limit)
    while number < last and going:
        if any(number >= len(each) for each in rows):
            raise LoopRoom(loop.name, number + 1, len(rows[0]), span=loop.span).error()
        going, *results = yield [np.array(number, np.int64), limit, going, *carried, *outside]
        carried = results[: loop.carried]
        for row, result in zip(rows, results[loop.carried :], strict=True):
            row[number] = result
        number += 1
    return np.array(number, np.int64), *carried, *rows
