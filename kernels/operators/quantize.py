"""Between floats and small integers: quantized and dequantized tensors, and products of matrices of 8-bit integers."""

from __future__ import annotations

from collections.abc import Callable

import tirlite as tl
from tirlite.ir import Call, Expr, Op, PrimFunc, TensorType, f32, i32
from tirlite.kernels.operators.elementwise import spread
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.formulas import clip
from tirlite.kernels.operators.matmul import Product
from tirlite.kernels.operators.multiplication import multiplication
from tirlite.kernels.operators.product import plain
from tirlite.kernels.operators.shapes import Extent, elements, extents


@factory
def quantize_linear(X: TensorType, S: TensorType, Z: TensorType | None, Y: TensorType, *, axis: int = 1) -> PrimFunc:
    """y = x / scale rounded to nearest even, plus a zero point, saturated.

    Scale and zero point are one number each, or one for each index along an axis of x.
    """

    def formula(x: Expr, scale: Expr, zero: Expr | None = None) -> Expr:
        rounded = Call(f32, Op.ROUND, (x.astype(f32) / scale.astype(f32),))
        shifted = rounded if zero is None else rounded + zero.astype(f32)
        return clip(shifted, low=Y.dtype.min, high=Y.dtype.max)

    return _along("quantize_linear", X, S, Z, Y, axis, formula)


@factory
def dequantize_linear(X: TensorType, S: TensorType, Z: TensorType | None, Y: TensorType, *, axis: int = 1) -> PrimFunc:
    """y = (x - zero point) * scale, where both are as for `quantize_linear`."""

    def formula(x: Expr, scale: Expr, zero: Expr | None = None) -> Expr:
        distance = x.astype(i32) if zero is None else x.astype(i32) - zero.astype(i32)
        return distance.astype(f32) * scale.astype(f32)

    return _along("dequantize_linear", X, S, Z, Y, axis, formula)


def _along(
    name: str,
    X: TensorType,
    S: TensorType,
    Z: TensorType | None,
    Y: TensorType,
    axis: int,
    formula: Callable[..., Expr],
) -> PrimFunc:
    shape = extents(X)
    axis = axis % len(shape) if shape else 0

    def along(tensor: TensorType) -> tuple[Extent, ...]:
        return (elements(tensor), *(1 for _ in shape[axis + 1 :])) if extents(tensor) else ()

    types = (X, S, Y) if Z is None else (X, S, Z, Y)
    shapes = (shape, *(along(each) for each in types[1:-1]), extents(Y))
    return spread(name, types, formula, shapes)


@factory
def matmul_integer(A: TensorType, B: TensorType, ZA: TensorType, ZB: TensorType, Y: TensorType) -> PrimFunc:
    """y = (a - zero point of a) @ (b - zero point of b) of 8-bit integers, in i32, broadcast as `matmul`.

    A zero point is one number; that of a may be one for each row, that of b one for each column.
    """
    form = Product.of(A, B, Y)
    (batches, n, terms, m), count_a, count_b = form.shape, form.count_a, form.count_b
    zeros_a, zeros_b = elements(ZA), elements(ZB)
    multiply = multiplication(i32, form.shape, plain, form.index_a, form.index_b)

    @tl.kernel
    def matmul_integer(a: A, b: B, zero_a: ZA, zero_b: ZB, y: tl.out[Y]):
        rows = tl.view(a, a.dtype[count_a, n, terms])
        columns = tl.view(b, b.dtype[count_b, terms, m])
        of_rows = tl.view(zero_a, zero_a.dtype[zeros_a])
        of_columns = tl.view(zero_b, zero_b.dtype[zeros_b])
        lefts = tl.alloc(tl.i16[count_a, n, terms])
        rights = tl.alloc(tl.i16[count_b, terms, m])
        for t in range(count_a):
            for i in range(n):
                for p in range(terms):
                    lefts[t, i, p] = tl.i16(rows[t, i, p]) - tl.i16(of_rows[i % zeros_a])
        for t in range(count_b):
            for p in range(terms):
                for j in range(m):
                    rights[t, p, j] = tl.i16(columns[t, p, j]) - tl.i16(of_columns[j % zeros_b])
        results = tl.view(y, tl.i32[batches, n, m])
        multiply(lefts, rights, results, results)

    return matmul_integer.ir
