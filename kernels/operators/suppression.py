"""Non-maximum suppression: the boxes that overlap none with a better score."""

from __future__ import annotations

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import PrimFunc, TensorType
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.order import above, comes_before, sinking
from tirlite.kernels.operators.shapes import Extent, extents


@factory
def non_max_suppression(
    X: TensorType,
    S: TensorType,
    M: TensorType,
    V: TensorType,
    L: TensorType,
    Y: TensorType,
    C: TensorType,
    *,
    center: bool = False,
    scored: bool = True,
) -> PrimFunc:
    """For each class the boxes, from the best to the worst, that overlap none before them, and their number.

    Rows of the result are [batch, class, box]; those after the last one are not written. The best of the remaining
    boxes is the root of a heap.
    """
    batches, classes, number = extents(S)
    overlaps = _overlapping(_corner(center, is_low=True), _corner(center, is_low=False))
    sink = sinking(_coming_first(number))

    @tl.kernel
    def non_max_suppression(boxes: X, scores: S, most: M, overlap: V, least: L, chosen: tl.out[Y], count: tl.out[C]):
        keys = tl.view(scores, scores.dtype[batches * classes, number, 1])
        queue = tl.alloc(tl.i64[1, number, 1])
        at = tl.i64(0)
        for b in range(batches):
            for c in range(classes):
                row = b * classes + c
                left = tl.i64(0)
                for i in range(number):
                    if keys[row, i, 0] > least[()] if tl.static(scored) else True:
                        queue[0, left, 0] = i
                        left += 1
                for step in range(left // 2):
                    sink(queue, 0, 0, left // 2 - 1 - step, left, keys, row)
                begin = at
                while left > 0 and at - begin < most[()]:
                    best = queue[0, 0, 0]
                    left -= 1
                    queue[0, 0, 0] = queue[0, left, 0]
                    sink(queue, 0, 0, 0, left, keys, row)
                    before = begin
                    while before < at and not overlaps(boxes, b, best, chosen[before, 2], overlap[()]):
                        before += 1
                    if before == at:
                        chosen[at, 0] = b
                        chosen[at, 1] = c
                        chosen[at, 2] = best
                        at += 1
        count[()] = at

    return non_max_suppression.ir


def _coming_first(number: Extent) -> Inline:
    """Whether the first of two boxes has the better score, or the same score and the lesser index."""
    better = comes_before(tl.f32, above)

    @tl.inline
    def is_first(keys, row, q, i, j):
        x = keys[row, min(max(i, 0), number - 1), q]
        y = keys[row, min(max(j, 0), number - 1), q]
        return better(x, y) or (i < j and not better(y, x))

    return is_first


def _corner(center: bool, *, is_low: bool) -> Inline:
    """The lower or the upper end of a box along an axis."""

    @tl.inline
    def corner(boxes, b, i, q):
        if tl.static(center):
            half = boxes[b, i, q + 2] / tl.f32(2)
            return boxes[b, i, q] - half if tl.static(is_low) else boxes[b, i, q] + half
        elif tl.static(is_low):
            return min(boxes[b, i, q], boxes[b, i, q + 2])
        else:
            return max(boxes[b, i, q], boxes[b, i, q + 2])

    return corner


def _overlapping(low: Inline, high: Inline) -> Inline:
    """Whether the intersection of two boxes is more than a share of their union."""

    @tl.inline
    def shared(boxes, b, i, j, q):
        return min(high(boxes, b, i, q), high(boxes, b, j, q)) - max(low(boxes, b, i, q), low(boxes, b, j, q))

    @tl.inline
    def area(boxes, b, i):
        return (high(boxes, b, i, 0) - low(boxes, b, i, 0)) * (high(boxes, b, i, 1) - low(boxes, b, i, 1))

    @tl.inline
    def overlaps(boxes, b, i, j, limit):
        width = shared(boxes, b, i, j, 0)
        height = shared(boxes, b, i, j, 1)
        common = width * height
        mine = area(boxes, b, i)
        other = area(boxes, b, j)
        both = mine + other - common
        has_area = width > 0 and height > 0 and common > 0 and mine > 0 and other > 0 and both > 0
        return has_area and common / both > limit

    return overlaps
