"""Matrix products: `matmul` with NumPy's broadcasting over batches, and `gemm` with factors and a bias."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType, PrimFunc, TensorType
from tirlite.kernels.operators.case import Case, integers, normal
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.indices import to_operand
from tirlite.kernels.operators.multiplication import multiplication
from tirlite.kernels.operators.shapes import Extent, broadcast, extents, is_one, product


@dataclass(frozen=True, slots=True)
class Product:
    """What numpy.matmul makes of two shapes: batches of matrices.

    `shape` is batches, rows, terms and columns. The operands have `count_a` and `count_b` matrices, and batch t is the
    product of those at `index_a(t)` and `index_b(t)`.
    """

    shape: tuple[Extent, Extent, Extent, Extent]
    count_a: Extent
    count_b: Extent
    index_a: Inline
    index_b: Inline

    @staticmethod
    def of(A: TensorType, B: TensorType, Y: TensorType) -> Product:
        left, right = extents(A), extents(B)
        left = left if len(left) > 1 else (1, *left)
        right = right if len(right) > 1 else (*right, 1)
        axes = broadcast((left[:-2], right[:-2]), extents(Y)[: max(len(left), len(right)) - 2])
        if all(axis.present == (True, False) for axis in axes):
            # All batches have one right operand: their rows are those of one matrix.
            axes, left = (), (product(left[:-1]), left[-1])
        batches = product(axis.extent for axis in axes)
        counts = (product(axis.extent for axis in axes if axis.present[side]) for side in (0, 1))
        return Product((batches, *left[-2:], right[-1]), *counts, to_operand(axes, 0), to_operand(axes, 1))


@factory
def matmul(A: TensorType, B: TensorType, Y: TensorType) -> PrimFunc:
    """y = a @ b as numpy.matmul has it: matrices in the last two axes, those before them broadcast."""
    form = Product.of(A, B, Y)
    (batches, n, terms, m), count_a, count_b = form.shape, form.count_a, form.count_b
    multiply = multiplication(A.dtype, form.shape, plain, form.index_a, form.index_b)

    @tl.kernel
    def matmul(a: A, b: B, y: tl.out[Y]):
        lefts = tl.view(a, a.dtype[count_a, n, terms])
        rights = tl.view(b, b.dtype[count_b, terms, m])
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
    shape_a, shape_b, shape_c, (n, m) = extents(A), extents(B), (1, 1, *(extents(C) if C else ()))[-2:], extents(Y)
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

    if C is None:

        @tl.kernel
        def gemm(a: A, b: B, y: tl.out[Y]):
            product_of(a, b, y, y)

    else:

        @tl.kernel
        def gemm(a: A, b: B, c: C, y: tl.out[Y]):
            bias = tl.view(c, c.dtype[shape_c[0], shape_c[1]])
            product_of(a, b, y, bias)

    return gemm.ir


def scaled(alpha: float) -> Inline:
    """What stores a sum times alpha."""

    @tl.inline
    def store(y, u, i, j, total, extra):
        y[u, i, j] = y.dtype(total * alpha)

    return plain if alpha == 1 else store


def biased(kind: DType, alpha: float, beta: float, shape: tuple[Extent, Extent]) -> Inline:
    """What stores a sum times alpha, and beta times an element of a bias that broadcasts from `shape`."""
    has_rows, has_columns = (int(not is_one(extent)) for extent in shape)

    @tl.inline
    def store(y, u, i, j, total, c):
        value = total * alpha if tl.static(alpha != 1) else total
        term = kind(c[i * has_rows, j * has_columns])
        y[u, i, j] = y.dtype(value + (term * beta if tl.static(beta != 1) else term))

    return store


n, m, k = tl.dims("n m k")


def case(left: tuple, right: tuple, result: tuple, *, dtype: DType = tl.f32, name: str = "", **sizes: int) -> Case:
    """A case of `matmul` at shapes, in which dims take their sizes by name."""
    shapes = [tuple(sizes[each.name] if isinstance(each, tl.ir.Var) else each for each in s) for s in (left, right)]
    tolerance = {tl.f16: 2e-3, tl.f32: 1e-5, tl.f64: 1e-13}.get(dtype, 0)
    values = normal(*shapes, dtype=dtype.numpy.type) if dtype.is_float else integers(-9, 9, *shapes, dtype=dtype.numpy)
    return Case(
        f"matmul-{name}", lambda: matmul(dtype[left], dtype[right], dtype[result]), values, np.matmul, tolerance
    )


def gemm_case(name: str, a: tuple, b: tuple, c: tuple | None, y: tuple, **attrs: object) -> Case:
    """A case of `gemm` at shapes of f32."""

    def reference(a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None) -> np.ndarray:
        left, right = (a.T if attrs.get("trans_a") else a), (b.T if attrs.get("trans_b") else b)
        made = np.float32(attrs.get("alpha", 1)) * (left @ right)
        return made if c is None else made + np.float32(attrs.get("beta", 1)) * c

    types = [None if shape is None else tl.f32[shape] for shape in (a, b, c, y)]
    inputs = normal(*(shape for shape in (a, b, c) if shape is not None))
    return Case(f"gemm-{name}", lambda: gemm(*types, **attrs), inputs, reference, 1e-5)


CASES = (
    case((6, 5), (5, 3), (6, 3), name="narrow"),
    case((7, 5), (5, 37), (7, 37), name="overlapping tiles"),
    case((n, k), (k, m), (n, m), name="symbolic", n=9, k=4, m=35),
    case((n, 4), (4, 16), (n, 16), name="symbolic rows", n=5),
    case((n, 3, 4), (4, 16), (n, 3, 16), name="shared right operand", n=2),
    case((2, 3, 4), (2, 4, 17), (2, 3, 17), name="batches"),
    case((2, 1, 3, 4), (3, 4, 5), (2, 3, 3, 5), name="broadcast batches"),
    case((3, 4), (2, 4, 5), (2, 3, 5), name="shared left operand"),
    case((4,), (4, 5), (5,), name="row"),
    case((3, 4), (4,), (3,), name="column"),
    case((4,), (4,), (), name="inner"),
    case((n, 0), (0, 5), (n, 5), name="no terms", n=3),
    case((5, 6), (6, 33), (5, 33), dtype=tl.f64, name="f64"),
    case((5, 6), (6, 33), (5, 33), dtype=tl.f16, name="f16"),
    case((5, 6), (6, 40), (5, 40), dtype=tl.i32, name="i32"),
    case((5, 6), (6, 7), (5, 7), dtype=tl.i64, name="i64"),
    gemm_case("plain", (4, 5), (5, 20), None, (4, 20)),
    gemm_case("transposed", (5, 4), (20, 5), (20,), (4, 20), trans_a=True, trans_b=True, alpha=0.5, beta=2.0),
    gemm_case("one row", (1, 37), (11, 37), (11,), (1, 11), trans_b=True),
    gemm_case("bias of rows", (6, 5), (9, 5), (6, 1), (6, 9), trans_b=True),
    gemm_case("bias", (6, 5), (5, 18), (6, 18), (6, 18), beta=0.5),
)


@tl.inline
def fused(a, b, c):
    return tl.fma(a, b, c)


@tl.inline
def in_steps(a, b, c):
    return a * b + c


def multiply_add(kind: DType) -> Inline:
    """`a * b + c`, rounded once for floats."""
    return fused if kind.is_float else in_steps


@tl.inline
def plain(y, u, i, j, total, extra):
    y[u, i, j] = y.dtype(total)
