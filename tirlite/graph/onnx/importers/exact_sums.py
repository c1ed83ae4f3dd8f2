"""Where sums of products of small integers are exact in f32: floats are multiplied several times as fast as i32.

A float holds each integer up to 2^24. As long as the absolute values of all terms of a sum stay below that together, so
do all sums of some of them, in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tirlite.graph.expr import Constant, Expr

_EXACT = 1 << 24

# The first channel, the one behind the last, and the weights of these as floats.
Part: TypeAlias = tuple[int, int, npt.NDArray[np.float32]]


def in_floats(operands: tuple[Expr, Expr], points: Sequence[Expr], groups: int) -> tuple[Part, ...] | None:
    """The parts of the channels of a convolution over each of which its sums are exact in f32.

    Operands are the image and the weights `[outputs, channels of a group, *window]`, `points` what is subtracted from
    both. None where weights are not known, or some channel has a part too many; channels of groups are one part.
    """
    weight, point = operands[1], points[1]
    if not (isinstance(weight, Constant) and isinstance(point, Constant)) or any(
        each.dtype.bits > 8 for each in operands
    ):
        return None
    distances = weight.value.astype(np.int64) - point.value.astype(np.int64)
    sums = np.abs(distances).reshape(*distances.shape[:2], -1).sum(2) * _reach(operands[0], points[0])
    ends, total = [0], np.zeros(len(sums), np.int64)
    for channel, added in enumerate(sums.T):
        if (total + added).max(initial=0) >= _EXACT:
            ends.append(channel)
            total = np.zeros_like(total)
        total = total + added
        if total.max(initial=0) >= _EXACT:
            return None
    if groups > 1 and len(ends) > 1:
        return None
    weights = distances.astype(np.float32)
    return tuple((first, end, weights[:, first:end]) for first, end in pairwise((*ends, sums.shape[1])))


def _reach(image: Expr, point: Expr) -> int:
    """How far an element may be from what is subtracted."""
    least, most = image.dtype.min, image.dtype.max
    zeros: npt.NDArray[np.int64] = np.array([least, most])
    if isinstance(point, Constant):
        zeros = point.value.astype(np.int64).reshape(-1)
    return int(max(abs(end - zero) for end in (least, most) for zero in zeros))
