"""Cases of the kernels of `tirlite.kernels.operators.quantize`."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.ir import DType
from tirlite.kernels.operators.case import Case, integers, joined, normal
from tirlite.kernels.operators.quantize import dequantize_linear, matmul_integer, quantize_linear

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
