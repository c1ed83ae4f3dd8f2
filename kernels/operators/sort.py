"""The rows of a matrix in order, by merging: first single rows, then pairs, then pairs of pairs."""

from __future__ import annotations

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType, PrimFunc, TensorType
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.shapes import Extent, extents


@factory
def sort_rows(X: TensorType, O: TensorType, F: TensorType) -> PrimFunc:
    """order = the indices of the rows of x in order, equal ones as they stand; fresh where one differs from the last.

    Elements count from left to right; nan stands behind all numbers, and equals itself.
    """
    count, width = extents(X)
    kind = tl.u8 if X.dtype.is_bool else computed_in(X.dtype)

    differ_at = _differing(kind, width)
    is_before = _before(kind)

    @tl.kernel
    def sort_rows(x: X, order: tl.out[O], fresh: tl.out[F]):
        merged = tl.alloc(tl.i64[count])
        for i in range(count):
            order[i] = i
        run = tl.i64(1)
        while run < count:
            for pair in range((count + 2 * run - 1) // (2 * run)):
                low = pair * 2 * run
                middle = min(low + run, count)
                high = min(low + 2 * run, count)
                left = low
                right = middle
                for k in range(low, high):
                    take_right = left >= middle
                    if left < middle and right < high:
                        a = order[left]
                        b = order[right]
                        q = differ_at(x, b, a)
                        if q < width:
                            take_right = is_before(kind(x[b, q]), kind(x[a, q]))
                    if take_right:
                        merged[k] = order[right]
                        right += 1
                    else:
                        merged[k] = order[left]
                        left += 1
            for i in range(count):
                order[i] = merged[i]
            run *= 2
        for i in range(count):
            if i == 0:
                fresh[i] = True
            else:
                fresh[i] = differ_at(x, order[i], order[i - 1]) < width

    return sort_rows.ir


def _differing(kind: DType, width: Extent) -> Inline:
    """The first column in which two rows are not the same, `width` if there is none."""

    @tl.inline
    def is_same(a, b):
        if tl.static(kind.is_float):
            return a == b or (tl.isnan(a) and tl.isnan(b))
        else:
            return a == b

    @tl.inline
    def differ_at(x, a, b):
        q = 0
        while q < width and is_same(kind(x[a, min(q, width - 1)]), kind(x[b, min(q, width - 1)])):
            q += 1
        return q

    return differ_at


def _before(kind: DType) -> Inline:
    """Whether an element is strictly less than another one, nan greater than all numbers."""

    @tl.inline
    def is_before(a, b):
        if tl.static(kind.is_float):
            return a < b or (tl.isnan(b) and not tl.isnan(a))
        else:
            return a < b

    return is_before
