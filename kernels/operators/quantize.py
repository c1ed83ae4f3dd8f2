"""Quantization, dequantization and requantization, and products and convolutions of 8-bit integers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Unpack

import tirlite as tl
from tirlite.ir import DType, Expr, PrimFunc, TensorType, f32, i32
from tirlite.kernels.operators.conv import conv
from tirlite.kernels.operators.elementwise import spread
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.formulas import dequantized, quantized, requantized, with_dequantized
from tirlite.kernels.operators.matmul import Product, plain
from tirlite.kernels.operators.multiplication import multiplication
from tirlite.kernels.operators.shapes import Extent, elements, extents, product
from tirlite.kernels.operators.window import Moves


@factory
def quantize_linear(
    X: TensorType, S: TensorType, Z: TensorType | None, Y: TensorType, *, dtype: DType, axis: int = 1
) -> PrimFunc:
    """y = x / scale rounded to nearest even, plus a zero point, saturated.

    Scale and zero point are scalars, or have one number per index of an axis of x.
    """
    return _along("quantize_linear", X, S, Z, Y, axis, partial(quantized, dtype=dtype))


@factory
def dequantize_linear(
    X: TensorType, S: TensorType, Z: TensorType | None, Y: TensorType, *, dtype: DType, axis: int = 1
) -> PrimFunc:
    """y = (x - zero point) * scale, with scale and zero point as in `quantize_linear`."""
    return _along("dequantize_linear", X, S, Z, Y, axis, partial(dequantized, dtype=f32))


@factory
def requantize(T: TensorType, F: TensorType, Z: TensorType, Y: TensorType, *, dtype: DType) -> PrimFunc:
    """y = total * factor rounded to nearest even, plus a zero point, saturated; factors broadcast."""
    return spread("requantize", (T, F, Z, Y), partial(requantized, dtype=dtype))


@factory
def add_dequantized(X: TensorType, A: TensorType, S: TensorType, Z: TensorType, Y: TensorType) -> PrimFunc:
    """y = x + (a - zero point) * scale, where a is quantized."""
    return spread("add_dequantized", (X, A, S, Z, Y), with_dequantized)


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
    """y = (a - zero point of a) @ (b - zero point of b) of 8-bit integers, in i32, broadcast as in `matmul`.

    Zero points are scalars, or have one number per row of a or column of b.
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


@factory
def conv_integer(
    X: TensorType,
    W: TensorType,
    ZX: TensorType,
    ZW: TensorType,
    Y: TensorType,
    *,
    groups: int = 1,
    **moves: Unpack[Moves],
) -> PrimFunc:
    """The convolution of x and w minus their zero points, in i32; that of w is a scalar or one number per output."""
    outputs, taps, count, zeros = extents(W)[0], product(extents(W)[1:]), elements(X), elements(ZW)
    kinds = TensorType(i32, X.shape), TensorType(i32, W.shape)
    convolve = conv(*kinds, None, Y, groups=groups, **moves)

    @tl.kernel
    def conv_integer(x: X, w: W, zero_x: ZX, zero_w: ZW, y: tl.out[Y]):
        image = tl.view(x, x.dtype[count])
        weights = tl.view(w, w.dtype[outputs, taps])
        points = tl.view(zero_w, zero_w.dtype[zeros])
        lefts = tl.alloc(tl.i32[count])
        rights = tl.alloc(tl.i32[outputs, taps])
        for i in range(count):
            lefts[i] = tl.i32(image[i]) - tl.i32(zero_x[()])
        for o in range(outputs):
            for p in range(taps):
                rights[o, p] = tl.i32(weights[o, p]) - tl.i32(points[o % zeros])
        distances = tl.view(lefts, kinds[0])
        factors = tl.view(rights, kinds[1])
        convolve(distances, factors, y)

    return conv_integer.ir
