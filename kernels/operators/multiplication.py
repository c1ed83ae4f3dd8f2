"""The loops that multiply batches of matrices, with a given function to store sums."""

from __future__ import annotations

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.shapes import Extent, is_one, product
from tirlite.kernels.operators.window import Window, picking

Matrices = tuple[Extent, Extent, Extent, Extent]  # batches, rows, terms, columns


def multiplication(
    dtype: DType,
    shape: Matrices,
    store: Inline,
    index_a: Inline,
    index_b: Inline,
    *,
    trans_a: bool = False,
    trans_b: bool = False,
    is_part: bool = False,
) -> Inline:
    """`multiply(a, b, y, extra)` of operands with the axes batch, row and column; b may have more columns (`is_part`).

    Batch t is the product of those at `index_a(t)` and `index_b(t)`; `store(y, t, i, j, sum, extra)` is called for each
    sum.
    """
    n, m = shape[1], shape[3]
    # A single row of a transpose, or a single column, is viewed as a row, so that its terms are contiguous.
    left = _column_major if trans_a and not is_one(n) else _row_major
    has_one = is_one(m) and not is_part
    right = _column_major if trans_b or has_one else _row_major
    turned = is_one(n) and trans_a, has_one and not trans_b
    matrices = _loops(computed_in(dtype), shape, store, (left, index_a), (right, index_b))
    terms = shape[2]

    @tl.inline
    def multiply_by(a, b, y, extra):
        if tl.static(turned[1]):
            column_of_b = tl.view(b, b.dtype[b.shape[0], 1, terms])
            matrices(a, column_of_b, y, extra)
        else:
            matrices(a, b, y, extra)

    @tl.inline
    def multiply(a, b, y, extra):
        if tl.static(turned[0]):
            row_of_a = tl.view(a, a.dtype[a.shape[0], 1, terms])
            multiply_by(row_of_a, b, y, extra)
        else:
            multiply_by(a, b, y, extra)

    return multiply


def _loops(
    kind: DType, shape: Matrices, store: Inline, of_a: tuple[Inline, Inline], of_b: tuple[Inline, Inline]
) -> Inline:
    """`matrices(a, b, y, extra)`: the loops, but for those of one iteration; operands by their layouts and batches."""
    batches, n, terms, m = shape
    (left, index_a), (right, index_b) = of_a, of_b

    @tl.inline
    def element(a, b, y, extra, t, i, j):
        total = kind(0)
        for p in tl.reduce(terms):
            total += kind(left(a, index_a(t), i, p)) * kind(right(b, index_b(t), p, j))
        store(y, t, i, j, total, extra)

    @tl.inline
    def row(a, b, y, extra, t, i):
        if tl.static(is_one(m)):
            element(a, b, y, extra, t, i, 0)
        else:
            for j in range(m):
                element(a, b, y, extra, t, i, j)

    @tl.inline
    def matrix(a, b, y, extra, t):
        if tl.static(is_one(n)):
            row(a, b, y, extra, t, 0)
        else:
            for i in range(n):
                row(a, b, y, extra, t, i)

    @tl.inline
    def matrices(a, b, y, extra):
        with tl.allow("contract"):
            if tl.static(is_one(batches)):
                matrix(a, b, y, extra, 0)
            else:
                for t in range(batches):
                    matrix(a, b, y, extra, t)

    return matrices


@tl.inline
def _row_major(a, t, i, p):
    return a[t, i, p]


@tl.inline
def _column_major(a, t, i, p):
    return a[t, p, i]


def over_points(
    window: Window, dtype: DType, planes: Extent, weights: tuple[Extent, Extent, Extent], *, has_bias: bool
) -> Inline:
    """`sweep(x, w, bias, y)` for windows of a single element: the channels of a plane are the right operand in place.

    With strides, the elements that windows see are copied together first. `weights` are groups, outputs and channels.
    """
    (groups, outputs, taken), kind = weights, computed_in(dtype)
    elements, places = product(window.inputs), product(window.places)

    @tl.inline
    def store(y, t, o, place, total, bias):
        y[t, o, place] = y.dtype(total + kind(bias[t % groups, o]) if tl.static(has_bias) else total)

    @tl.inline
    def group(t):
        return t % groups

    @tl.inline
    def same(t):
        return t

    multiply = multiplication(dtype, (planes, outputs, taken, places), store, group, same)
    pick = None if window.is_point else picking(window)

    @tl.inline
    def sweep(x, w, bias, y):
        factors = tl.view(w, w.dtype[groups, outputs, taken])
        results = tl.view(y, y.dtype[planes, outputs, places])
        if tl.static(window.is_point):
            images = tl.view(x, x.dtype[planes, taken, elements])
            multiply(factors, images, results, bias)
        else:
            whole = tl.view(x, x.dtype[1, planes * taken, elements])
            picked = tl.alloc(x.dtype[planes, taken, places])
            pick(picked, whole, 0)
            multiply(factors, picked, results, bias)

    return sweep
