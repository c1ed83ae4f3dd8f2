"""Between floats and small integers: quantized and dequantized tensors, and products of matrices of 8-bit integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import tirlite as tl
from tirlite.ir import Call, DType, Expr, Op, PrimFunc, TensorType, f32, i32
from tirlite.kernels.operators.case import Case, integers, joined, normal
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
        lefts = tl.alloc(tl.i32[count_a, n, terms])
        rights = tl.alloc(tl.i32[count_b, terms, m])
        for t in range(count_a):
            for i in range(n):
                for p in range(terms):
                    lefts[t, i, p] = tl.i32(rows[t, i, p]) - tl.i32(of_rows[i % zeros_a])
        for t in range(count_b):
            for p in range(terms):
                for j in range(m):
                    rights[t, p, j] = tl.i32(columns[t, p, j]) - tl.i32(of_columns[j % zeros_b])
        results = tl.view(y, tl.i32[batches, n, m])
        multiply(lefts, rights, results, results)

    return matmul_integer.ir


n, m = tl.dims("n m")


def quantized(x: np.ndarray, scale: np.ndarray, zero: np.ndarray) -> np.ndarray:
    """Of axis 0."""
    scale, zero = (each.reshape(-1, *(1,) * (x.ndim - 1)) if each.ndim else each for each in (scale, zero))
    info = np.iinfo(zero.dtype)
    return np.clip(np.rint(x / scale) + zero, info.min, info.max).astype(zero.dtype)


def dequantized(x: np.ndarray, scale: np.ndarray, zero: np.ndarray) -> np.ndarray:
    scale, zero = (each.reshape(-1, *(1,) * (x.ndim - 1)) if each.ndim else each for each in (scale, zero))
    return ((x.astype(np.int32) - zero) * scale).astype(np.float32)


def quantize_case(name: str, dtype: DType, along: tuple[int, ...]) -> Case:
    def inputs(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        scale = np.asarray(rng.uniform(0.01, 0.1, along), np.float32)
        return (*normal((3, 40), scale=3.0)(rng), scale, *integers(0, 9, along, dtype=dtype.numpy.type)(rng))

    types = (tl.f32[n, m], tl.f32[along], dtype[along], dtype[n, m])
    return Case(f"quantize_linear-{name}", lambda: quantize_linear(*types, axis=0), inputs, quantized)


def dequantize_case(name: str, dtype: DType, along: tuple[int, ...]) -> Case:
    inputs = joined(
        integers(0, 99, (3, 40), dtype=dtype.numpy.type), normal(along), integers(0, 9, along, dtype=dtype.numpy.type)
    )
    types = (dtype[n, m], tl.f32[along], dtype[along], tl.f32[n, m])
    return Case(f"dequantize_linear-{name}", lambda: dequantize_linear(*types, axis=0), inputs, dequantized)


def multiplied(a: np.ndarray, b: np.ndarray, zero_a: np.ndarray, zero_b: np.ndarray) -> np.ndarray:
    return (a.astype(np.int32) - zero_a.reshape(-1, 1)) @ (b.astype(np.int32) - zero_b)


def integer_case(name: str, a: tuple[int, ...], b: tuple[int, ...], zero_a: tuple, zero_b: tuple) -> Case:
    unsigned = integers(0, 255, a, dtype=np.uint8)
    signed = integers(-128, 127, b, dtype=np.int8)
    zeros = (integers(0, 255, zero_a, dtype=np.uint8), integers(-9, 9, zero_b, dtype=np.int8))
    types = (tl.u8[a], tl.i8[b], tl.u8[zero_a], tl.i8[zero_b], tl.i32[(*b[:-2], a[-2], b[-1])])
    return Case(f"matmul_integer-{name}", lambda: matmul_integer(*types), joined(unsigned, signed, *zeros), multiplied)


CASES = (
    quantize_case("u8", tl.u8, ()),
    quantize_case("i8", tl.i8, ()),
    quantize_case("rows", tl.u8, (3,)),
    dequantize_case("u8", tl.u8, ()),
    dequantize_case("rows", tl.i8, (3,)),
    Case(
        "dequantize_linear-plain",
        lambda: dequantize_linear(tl.i32[n], tl.f32[()], None, tl.f32[n]),
        joined(integers(-999, 999, (50,), dtype=np.int32), normal(())),
        lambda x, scale: (x * scale).astype(np.float32),
    ),
    integer_case("plain", (5, 7), (7, 9), (), ()),
    integer_case("rows and columns", (5, 7), (7, 20), (5,), (20,)),
    integer_case("batches", (4, 7), (2, 7, 6), (), ()),
)
