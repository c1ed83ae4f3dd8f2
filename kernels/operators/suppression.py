"""The boxes that overlap none with a better score: what detectors end with."""

from __future__ import annotations

import tirlite as tl
from tirlite.ir import PrimFunc, TensorType
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.shapes import extents


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
    """The best box of each class again and again, without those that overlap it, and how many that are.

    Rows of the result are [batch, class, box]; those behind the last one are left as they are.
    """
    batches, classes, number = extents(S)

    @tl.inline
    def low(boxes, b, i, q):
        if tl.static(center):
            return boxes[b, i, q] - boxes[b, i, q + 2] / tl.f32(2)
        else:
            return min(boxes[b, i, q], boxes[b, i, q + 2])

    @tl.inline
    def high(boxes, b, i, q):
        if tl.static(center):
            return boxes[b, i, q] + boxes[b, i, q + 2] / tl.f32(2)
        else:
            return max(boxes[b, i, q], boxes[b, i, q + 2])

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

    @tl.kernel
    def non_max_suppression(boxes: X, scores: S, most: M, overlap: V, least: L, chosen: tl.out[Y], count: tl.out[C]):
        at = tl.i64(0)
        alive = tl.alloc(tl.bool_[number])
        for b in range(batches):
            for c in range(classes):
                for i in range(number):
                    alive[i] = scores[b, c, i] > least[()] if tl.static(scored) else True
                left = min(most[()], number)
                while left > 0:
                    best = tl.i64(-1)
                    top = tl.f32(0)
                    for i in range(number):
                        if alive[i] and (best < 0 or scores[b, c, i] > top):
                            best = i
                            top = scores[b, c, i]
                    left -= 1
                    if best < 0:
                        left = 0
                    else:
                        chosen[at, 0] = b
                        chosen[at, 1] = c
                        chosen[at, 2] = best
                        at += 1
                        alive[best] = False
                        for i in range(number):
                            if alive[i] and overlaps(boxes, b, i, best, overlap[()]):
                                alive[i] = False
        count[()] = at

    return non_max_suppression.ir
