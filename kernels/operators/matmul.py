"""Matrix products: `matmul` with NumPy's broadcasting over batches, and `gemm` with factors and a bias.

The columns of a constant matrix may lie by panels, one after the other: a tile of sums finds what it reads for all
terms together in memory, without a copy.
"""

from __future__ import annotations

from dataclasses import dataclass

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType, PrimFunc, TensorType
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory, with_given
from tirlite.kernels.operators.multiplication import multiplication
from tirlite.kernels.operators.shapes import Extent, broadcast, extents, is_one, product as count_of, to_operand


@dataclass(frozen=True, slots=True)
class Product:
    """The batches of matrices of numpy.matmul for two shapes.

    `shape` is batches, rows, terms and columns. The operands have `count_a` and `count_b` matrices, and batch t is the
    product of those at `index_a(t)` and `index_b(t)`.
    """

    shape: tuple[Extent, Extent, Extent, Extent]
    count_a: Extent
    count_b: Extent
    index_a: Inline
    index_b: Inline

    @staticmethod
    def of(A: TensorType, B: TensorType, Y: TensorType, *, trans_a: bool = False, trans_b: bool = False) -> Product:
        left, right = extents(A), extents(B)
        left = _seen(left, turned=trans_a) if len(left) > 1 else (1, *left)
        right = _seen(right, turned=trans_b) if len(right) > 1 else (*right, 1)
        axes = broadcast((left[:-2], right[:-2]), extents(Y)[: max(len(left), len(right)) - 2])
        if not trans_a and all(axis.present == (True, False) for axis in axes):
            # All batches have one right operand: their rows are those of one matrix.
            axes, left = (), (count_of(left[:-1]), left[-1])
        batches = count_of(axis.extent for axis in axes)
        counts = (count_of(axis.extent for axis in axes if axis.present[side]) for side in (0, 1))
        return Product((batches, *left[-2:], right[-1]), *counts, to_operand(axes, 0), to_operand(axes, 1))


def _seen(shape: tuple[Extent, ...], *, turned: bool) -> tuple[Extent, ...]:
    return (*shape[:-2], shape[-1], shape[-2]) if turned else shape


@factory
def matmul(A: TensorType, B: TensorType, Y: TensorType, *, trans_a: bool = False, trans_b: bool = False) -> PrimFunc:
    """y = a' @ b' as numpy.matmul has it: matrices in the last two axes, those before them broadcast.

    a' is a or has its last two axes exchanged, b' likewise.
    """
    form = Product.of(A, B, Y, trans_a=trans_a, trans_b=trans_b)
    (batches, n, terms, m), count_a, count_b = form.shape, form.count_a, form.count_b
    lines_a, lines_b = _seen((n, terms), turned=trans_a), _seen((terms, m), turned=trans_b)
    multiply = multiplication(A.dtype, form.shape, plain, form.index_a, form.index_b, trans_a=trans_a, trans_b=trans_b)

    @tl.kernel
    def matmul(a: A, b: B, y: tl.out[Y]):
        lefts = tl.view(a, a.dtype[count_a, lines_a[0], lines_a[1]])
        rights = tl.view(b, b.dtype[count_b, lines_b[0], lines_b[1]])
        results = tl.view(y, y.dtype[batches, n, m])
        multiply(lefts, rights, results, results)

    return matmul.ir


@factory
def gemm(
    A: TensorType,
    B: TensorType,
    C: TensorType | None,
    Y: TensorType,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    trans_a: bool = False,
    trans_b: bool = False,
) -> PrimFunc:
    """y = alpha * a' @ b' + beta * c for matrices, where a' is a or its transpose; c broadcasts to y, or is absent."""
    shape_a, shape_b, shape_c, (n, m) = extents(A), extents(B), _as_matrix(C), extents(Y)
    kind = computed_in(A.dtype)
    alpha, beta = (factor if kind.is_float else int(factor) for factor in (alpha, beta))
    store = biased(kind, alpha, beta, shape_c) if C else scaled(alpha)
    shape = (1, n, shape_a[0 if trans_a else 1], m)
    one = to_operand((), 0)
    multiply = multiplication(A.dtype, shape, store, one, one, trans_a=trans_a, trans_b=trans_b)

    @tl.inline
    def product_of(a, b, y, extra):
        lefts = tl.view(a, a.dtype[1, shape_a[0], shape_a[1]])
        rights = tl.view(b, b.dtype[1, shape_b[0], shape_b[1]])
        results = tl.view(y, y.dtype[1, n, m])
        multiply(lefts, rights, results, extra)

    return _with_bias("gemm", (A, B, C, Y), product_of)


@factory
def product(
    A: TensorType, W: TensorType, C: TensorType | None, Y: TensorType, *, alpha: float = 1.0, beta: float = 1.0
) -> PrimFunc:
    """y = alpha * a @ b + beta * c, where w has the columns of b by panels, of which the last one may have more."""
    (_, terms, size), rows, columns = extents(W), count_of(extents(A)[:-1]), extents(Y)[-1]
    kind, (has_rows, has_columns) = computed_in(A.dtype), (int(not is_one(extent)) for extent in _as_matrix(C))
    whole, rest = divmod(columns, size)

    def multiplied(panel: Inline, count: int, width: int) -> Inline:
        """Multiplies `count` panels, `width` columns of each."""

        @tl.inline
        def store_of(y, u, i, j, total, c):
            # The index is not bound to a name: schedules would not recognize the tile's rows behind one.
            value = total * alpha if tl.static(alpha != 1) else total
            if tl.static(C is None):
                y[0, i, panel(u) * size + j] = y.dtype(value)
            else:
                term = kind(c[i * has_rows, (panel(u) * size + j) * has_columns])
                y[0, i, panel(u) * size + j] = y.dtype(value + (term * beta if tl.static(beta != 1) else term))

        return multiplication(
            A.dtype, (count, rows, terms, width), store_of, to_operand((), 0), panel, is_part=width < size
        )

    @tl.inline
    def own(t):
        return t

    @tl.inline
    def last(t):
        return whole

    of_whole, of_rest = multiplied(own, whole, size), multiplied(last, 1, rest)

    @tl.inline
    def multiply(a, w, y, c):
        lefts = tl.view(a, a.dtype[1, rows, terms])
        results = tl.view(y, y.dtype[1, rows, columns])
        of_whole(lefts, w, results, c)
        if tl.static(rest):
            of_rest(lefts, w, results, c)

    return _with_bias("product", (A, W, C, Y), multiply)


@factory
def product_bytes(A: TensorType, W: TensorType, B: TensorType, Y: TensorType) -> PrimFunc:
    """y = a @ w + b of bytes in i32, where w has the columns by panels, and of each some terms at once side by side.

    The last panel may have more columns than there are.
    """
    (blocks, groups, size, each), rows, columns = extents(W), count_of(extents(A)[:-1]), extents(Y)[-1]
    is_full = columns == blocks * size

    @tl.kernel
    def product_bytes(a: A, w: W, b: B, y: tl.out[Y]):
        lefts = tl.view(a, a.dtype[rows, groups * each])
        results = tl.view(y, tl.i32[rows, columns])
        for u in range(blocks):
            for i in range(rows):
                for j in range(size if tl.static(is_full) else min(size, columns - u * size)):
                    total = tl.i32(0)
                    for q in tl.reduce(groups):
                        for r in tl.reduce(each):
                            total += tl.i32(lefts[i, each * q + r]) * tl.i32(w[u, q, j, r])
                    results[i, u * size + j] = total + b[u * size + j]

    return product_bytes.ir


def _with_bias(
    name: str, types: tuple[TensorType, TensorType, TensorType | None, TensorType], multiply: Inline
) -> PrimFunc:
    """The function that calls `multiply(a, b, y, c)` with c as a matrix, or with y for an absent c."""
    A, B, C, Y = types
    given, shape = C or A, _as_matrix(C)

    @tl.kernel
    def product_of(a: A, b: B, c: given, y: tl.out[Y]):
        if tl.static(C is None):
            multiply(a, b, y, y)
        else:
            bias = tl.view(c, c.dtype[shape[0], shape[1]])
            multiply(a, b, y, bias)

    return with_given(product_of, c=C).named(name)


def _as_matrix(C: TensorType | None) -> tuple[Extent, Extent]:
    return (1, 1, *(extents(C) if C else ()))[-2:]


def scaled(alpha: float) -> Inline:
    """Stores a sum times alpha."""

    @tl.inline
    def store(y, u, i, j, total, extra):
        y[u, i, j] = y.dtype(total * alpha)

    return plain if alpha == 1 else store


def biased(kind: DType, alpha: float, beta: float, shape: tuple[Extent, Extent]) -> Inline:
    """Stores a sum times alpha, plus beta times an element of a bias that broadcasts from `shape`."""
    has_rows, has_columns = (int(not is_one(extent)) for extent in shape)

    @tl.inline
    def store(y, u, i, j, total, c):
        value = total * alpha if tl.static(alpha != 1) else total
        term = kind(c[i * has_rows, j * has_columns])
        y[u, i, j] = y.dtype(value + (term * beta if tl.static(beta != 1) else term))

    return store


@tl.inline
def plain(y, u, i, j, total, extra):
    y[u, i, j] = y.dtype(total)


@factory
def det(X: TensorType, Y: TensorType) -> PrimFunc:
    """y[...] = the determinant of x[..., :, :]; 1 where it has no rows."""
    *batch, size, _ = extents(X)
    count, kind = count_of(batch), computed_in(X.dtype)

    @tl.kernel
    def det(x: X, y: tl.out[Y]):
        matrices = tl.view(x, x.dtype[count, size, size])
        results = tl.view(y, y.dtype[count])
        for t in tl.parallel(count):
            rows = tl.alloc(kind[size, size])
            for i in range(size):
                for j in range(size):
                    rows[i, j] = kind(matrices[t, i, j])
            result = kind(1)
            for k in range(size):
                pivot = k
                for i in range(k + 1, size):
                    pivot = i if abs(rows[i, k]) > abs(rows[pivot, k]) else pivot
                if pivot != k:
                    result = -result
                    for j in range(k, size):
                        other = rows[pivot, j]
                        rows[pivot, j] = rows[k, j]
                        rows[k, j] = other
                head = rows[k, k]
                result *= head
                if head != 0:
                    for i in range(k + 1, size):
                        factor = rows[i, k] / head
                        for j in range(k + 1, size):
                            rows[i, j] -= factor * rows[k, j]
            results[t] = y.dtype(result)

    return det.ir
