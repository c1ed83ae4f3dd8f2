"""A heap of indices along axis 1 of an array: of all of them the one that is above the others stands in front."""

from __future__ import annotations

import tirlite as tl
from tirlite.dsl import Inline


def sinking(is_above: Inline) -> Inline:
    """Makes what moves the index at a place down, until it is above both that hang below it.

    The heap is the first `count` elements of heap[i, :, q]; `is_above(keys, row, q, a, b)` compares two of them, which
    are indices, by what stands at these in keys[row, :, q].
    """

    @tl.inline
    def sink(heap, i, q, place, count, keys, row):
        at = place
        child = 2 * at + 1
        while child < count:
            other = min(child + 1, count - 1)
            if is_above(keys, row, q, heap[i, other, q], heap[i, child, q]):
                child = other
            upper = heap[i, at, q]
            lower = heap[i, child, q]
            if is_above(keys, row, q, lower, upper):
                heap[i, at, q] = lower
                heap[i, child, q] = upper
                at = child
                child = 2 * at + 1
            else:
                child = count

    return sink
