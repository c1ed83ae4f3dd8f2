"""Makes functions that map the number of an element in one box to that in another, from the axes of the boxes."""

from __future__ import annotations

from collections.abc import Sequence

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.kernels.operators.shapes import Axis, Extent, product


def numbered(steps: Sequence[tuple[Extent, Extent, Extent]], *, covers: bool) -> Inline:
    """`index(t)`: the sum of `t // inner % extent * stride` over steps of these three.

    With `covers`, t is below the inner times the extent of the first step.
    """

    @tl.inline
    def index(t, step=0):
        if tl.static(step == len(steps)):
            return 0
        elif tl.static(step == 0 and covers):
            inner, extent, stride = tl.static(steps[0])
            return t // inner * stride + index(t, 1)
        else:
            inner, extent, stride = tl.static(steps[step])
            return t // inner % extent * stride + index(t, tl.static(step + 1))

    return index


def to_operand(axes: Sequence[Axis], side: int) -> Inline:
    """From the number of an element in the box of all axes to that in the box of those that an operand has."""
    steps = []
    for number, axis in enumerate(axes):
        if axis.present[side]:
            rest = axes[number + 1 :]
            inner = product(each.extent for each in rest)
            steps.append((inner, axis.extent, product(each.extent for each in rest if each.present[side])))
    return numbered(steps, covers=bool(axes) and axes[0].present[side])


def from_part(axes: Sequence[Axis], chosen: Sequence[bool]) -> Inline:
    """From the number of an element in the box of the chosen axes to that in the box of all, at 0 in the others."""
    steps = []
    for number, axis in enumerate(axes):
        if chosen[number]:
            rest = range(number + 1, len(axes))
            inner = product(axes[each].extent for each in rest if chosen[each])
            steps.append((inner, axis.extent, product(axes[each].extent for each in rest)))
    return numbered(steps, covers=True)
