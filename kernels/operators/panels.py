"""Products of rows and constant matrices of which the columns lie by panels, one behind the other.

A tile of sums finds what it reads for all terms together in memory, without a copy.
"""

from __future__ import annotations

import tirlite as tl
from tirlite.ir import PrimFunc, TensorType
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.multiplication import multiplication
from tirlite.kernels.operators.shapes import extents, is_one, product as count_of


@factory
def product(
    A: TensorType, W: TensorType, C: TensorType | None, Y: TensorType, *, alpha: float = 1.0, beta: float = 1.0
) -> PrimFunc:
    """y = alpha * a @ b + beta * c, where w has the columns of the matrix b by panels."""
    (blocks, terms, size), rows, kind = extents(W), count_of(extents(A)[:-1]), computed_in(A.dtype)
    shape_c = (1, 1, *(extents(C) if C else ()))[-2:]
    has_rows, has_columns = (int(not is_one(extent)) for extent in shape_c)
    of_columns = (blocks, size) if has_columns else (1, 1)

    @tl.inline
    def first(t):
        return 0

    @tl.inline
    def own(t):
        return t

    @tl.inline
    def store(y, u, i, j, total, c):
        value = total * alpha if tl.static(alpha != 1) else total
        if tl.static(C is None):
            y[i, u, j] = y.dtype(value)
        else:
            term = kind(c[i * has_rows, u * has_columns, j * has_columns])
            y[i, u, j] = y.dtype(value + (term * beta if tl.static(beta != 1) else term))

    multiply = multiplication(A.dtype, (blocks, rows, terms, size), store, first, own)

    if C is None:

        @tl.kernel
        def product(a: A, w: W, y: tl.out[Y]):
            lefts = tl.view(a, a.dtype[1, rows, terms])
            results = tl.view(y, y.dtype[rows, blocks, size])
            multiply(lefts, w, results, results)

    else:

        @tl.kernel
        def product(a: A, w: W, c: C, y: tl.out[Y]):
            lefts = tl.view(a, a.dtype[1, rows, terms])
            results = tl.view(y, y.dtype[rows, blocks, size])
            bias = tl.view(c, c.dtype[shape_c[0], of_columns[0], of_columns[1]])
            multiply(lefts, w, results, bias)

    return product.ir


@factory
def pointwise(X: TensorType, W: TensorType, B: TensorType | None, Y: TensorType) -> PrimFunc:
    """The convolution of x with windows of one element, where w has the outputs by panels.

    For images of fewer elements than a panel has columns: outputs fill the lanes of vectors, which elements would not.
    The sums of a panel are turned over when they are stored.
    """
    batches, taken = extents(X)[:2]
    (blocks, _, size), places, kind = extents(W), count_of(extents(X)[2:]), computed_in(X.dtype)

    @tl.inline
    def panel(images, w, results, biases, t, p):
        sums = tl.alloc(kind[places, size])
        for i in range(places):
            for j in range(size):
                total = kind(0)
                for k in tl.reduce(taken):
                    total += kind(images[t, k, i]) * kind(w[p, k, j])
                sums[i, j] = total
        for j in range(size):
            for i in range(places):
                if tl.static(B is None):
                    results[t, p, j, i] = results.dtype(sums[i, j])
                else:
                    results[t, p, j, i] = results.dtype(sums[i, j] + kind(biases[p, j]))

    @tl.inline
    def sweep(x, w, biases, y):
        images = tl.view(x, x.dtype[batches, taken, places])
        results = tl.view(y, y.dtype[batches, blocks, size, places])
        with tl.allow("contract"):
            if tl.static(is_one(batches)):
                for p in tl.parallel(blocks):
                    panel(images, w, results, biases, 0, p)
            else:
                for p in tl.parallel(batches * blocks):
                    panel(images, w, results, biases, p // blocks, p % blocks)

    if B is None:

        @tl.kernel
        def pointwise(x: X, w: W, y: tl.out[Y]):
            sweep(x, w, x, y)

    else:

        @tl.kernel
        def pointwise(x: X, w: W, b: B, y: tl.out[Y]):
            biases = tl.view(b, b.dtype[blocks, size])
            sweep(x, w, biases, y)

    return pointwise.ir
