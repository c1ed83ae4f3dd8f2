"""Products of rows and constant matrices of which the columns lie by panels, one behind the other.

A tile of sums finds what it reads for all terms together in memory, without a copy.
"""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.ir import PrimFunc, TensorType
from tirlite.kernels.operators.case import Case, normal
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


def product_case(name: str, rows: tuple, terms: int, columns: int, size: int, c: tuple | None) -> Case:
    """A case of `product` of so many columns each, with 2 times something to add."""

    def reference(a: np.ndarray, w: np.ndarray, c: np.ndarray | None = None) -> np.ndarray:
        made = a @ w.swapaxes(0, 1).reshape(terms, columns)
        return made if c is None else made + 2 * c

    shapes = ((*rows, terms), (columns // size, terms, size), c, (*rows, columns))
    types = [None if shape is None else tl.f32[shape] for shape in shapes]
    inputs = normal(*(shape for shape in shapes[:3] if shape is not None))
    return Case(f"product-{name}", lambda: product(*types, beta=2.0), inputs, reference, 1e-5)


def pointwise_case(name: str, x: tuple, outputs: int, size: int, *, has_bias: bool) -> Case:
    """A case of `pointwise` with so many outputs in a panel."""

    def reference(x: np.ndarray, w: np.ndarray, b: np.ndarray | None = None) -> np.ndarray:
        made = np.einsum("tkhw,pkj->tpjhw", x, w).reshape(x.shape[0], outputs, *x.shape[2:])
        return made if b is None else made + b[:, None, None]

    shapes = (x, (outputs // size, x[1], size), (outputs,) if has_bias else None, (x[0], outputs, *x[2:]))
    types = [None if shape is None else tl.f32[shape] for shape in shapes]
    inputs = normal(*(shape for shape in shapes[:3] if shape is not None))
    return Case(f"pointwise-{name}", lambda: pointwise(*types), inputs, reference, 1e-5)


CASES = (
    product_case("alone", (3, 5), 9, 64, 32, None),
    product_case("bias", (20,), 17, 128, 64, (128,)),
    product_case("bias of rows", (7,), 5, 64, 64, (7, 1)),
    product_case("sum", (7,), 5, 64, 32, (7, 64)),
    pointwise_case("alone", (1, 9, 3, 5), 64, 32, has_bias=False),
    pointwise_case("several images", (3, 17, 7, 7), 64, 64, has_bias=True),
)
