"""Cases of the kernels of `tirlite.kernels.operators.quantize`."""

from __future__ import annotations

import numpy as np
from operator_cases.case import Case, integers, joined, normal

import tirlite as tl
from tirlite.ir import DType
from tirlite.kernels.operators.byte_sums import conv_bytes, matmul_bits, matmul_bytes
from tirlite.kernels.operators.quantize import (
    add_dequantized,
    conv_integer,
    dequantize_linear,
    matmul_integer,
    quantize_linear,
    requantize,
)

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
    return Case(f"quantize_linear-{name}", lambda: quantize_linear(*types, dtype=dtype, axis=0), inputs, quantized)


def dequantize_case(name: str, dtype: DType, along: tuple[int, ...]) -> Case:
    inputs = joined(
        integers(0, 99, (3, 40), dtype=dtype.numpy.type), normal(along), integers(0, 9, along, dtype=dtype.numpy.type)
    )
    types = (dtype[n, m], tl.f32[along], dtype[along], tl.f32[n, m])
    return Case(
        f"dequantize_linear-{name}", lambda: dequantize_linear(*types, dtype=tl.f32, axis=0), inputs, dequantized
    )


def multiplied(a: np.ndarray, b: np.ndarray, zero_a: np.ndarray, zero_b: np.ndarray) -> np.ndarray:
    return (a.astype(np.int32) - zero_a.reshape(-1, 1)) @ (b.astype(np.int32) - zero_b)


def integer_case(name: str, a: tuple[int, ...], b: tuple[int, ...], zero_a: tuple, zero_b: tuple) -> Case:
    unsigned = integers(0, 255, a, dtype=np.uint8)
    signed = integers(-128, 127, b, dtype=np.int8)
    zeros = (integers(0, 255, zero_a, dtype=np.uint8), integers(-9, 9, zero_b, dtype=np.int8))
    types = (tl.u8[a], tl.i8[b], tl.u8[zero_a], tl.i8[zero_b], tl.i32[(*b[:-2], a[-2], b[-1])])
    return Case(f"matmul_integer-{name}", lambda: matmul_integer(*types), joined(unsigned, signed, *zeros), multiplied)


def bits_case(bits: int) -> Case:
    """Three rows and two panels of 16 columns, of three blocks of 8 terms."""
    packed, of_blocks = (2, 3, bits, 16), (2, 3, 16)

    def reference(a: np.ndarray, w: np.ndarray, scale: np.ndarray, zero: np.ndarray) -> np.ndarray:
        parts = [w >> place & ((1 << bits) - 1) for place in range(0, 8, bits)]
        whole = np.stack(parts, 3).reshape(2, 3, 8, 16)
        floats = (whole - zero[:, :, None]) * scale[:, :, None]
        return a @ floats.transpose(1, 2, 0, 3).reshape(24, 32)

    types = tl.f32[n, 24], tl.u8[packed], tl.f32[of_blocks], tl.f32[of_blocks], tl.f32[n, 32]
    inputs = joined(normal((3, 24)), integers(0, 256, packed, dtype=np.uint8), normal(of_blocks, of_blocks))
    return Case(f"matmul_bits-{bits}", lambda: matmul_bits(*types, width=bits), inputs, reference, 1e-5)


def requantized(total: np.ndarray, factor: np.ndarray, zero: np.ndarray) -> np.ndarray:
    made = np.rint(total.astype(np.float32) * factor) + zero
    return np.clip(made, *(getattr(np.iinfo(zero.dtype), end) for end in ("min", "max"))).astype(zero.dtype)


def requantize_case(name: str, dtype: DType, along: tuple[int, ...]) -> Case:
    def inputs(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        factor = np.asarray(rng.uniform(0.01, 0.1, along), np.float32)
        totals = integers(-9999, 9999, (2, 3, 40), dtype=np.int32)(rng)
        return (*totals, factor, *integers(0, 9, (), dtype=dtype.numpy.type)(rng))

    types = (tl.i32[2, 3, n], tl.f32[along], dtype[()], dtype[2, 3, n])
    return Case(f"requantize-{name}", lambda: requantize(*types, dtype=dtype), inputs, requantized)


def summed(x: np.ndarray, beyond: int, w: np.ndarray, steps: tuple[int, ...], pads: tuple[int, ...]) -> np.ndarray:
    """The sums of x, in groups of as many channels as w has, by windows that stand before the channels of w."""
    axes, (outputs, *window, taken) = x.ndim - 2, w.shape
    pairs = [(0, 0), (0, 0), *zip(pads[:axes], pads[axes:], strict=True)]
    padded = np.pad(x.astype(np.int64), pairs, constant_values=beyond)
    seen = np.lib.stride_tricks.sliding_window_view(padded, window, (*range(2, 2 + axes),))
    seen = np.moveaxis(seen[(..., *(slice(None, None, step) for step in steps), *(slice(None),) * axes)], 1, -1)
    groups = np.split(w.astype(np.int64), x.shape[1] // taken)
    parts = [
        np.tensordot(seen[..., g * taken : (g + 1) * taken], each, axes=([*range(-axes - 1, 0)], [*range(1, axes + 2)]))
        for g, each in enumerate(groups)
    ]
    assert outputs == sum(map(len, groups))
    return np.moveaxis(np.concatenate(parts, -1), -1, 1)


def bytes_case(
    name: str, x: tuple[int, ...], w: tuple[int, ...], y: tuple[int, ...], *, like: tuple[DType, DType], **attrs: object
) -> Case:
    """Of the largest and the least bytes, many of them at the edges."""
    kind, weight = like
    axes, result = len(x) - 2, tl.f32 if weight.is_float else tl.i32
    steps, pads = attrs.get("strides", (1,) * axes), attrs.get("pads", (0,) * 2 * axes)
    given = {"strides": steps, "pads": pads, "dilations": (1,) * axes, "groups": x[1] // w[-1]}

    def inputs(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        image = rng.integers(kind.min, kind.max, x, kind.numpy, endpoint=True)
        image[..., -1], image[..., 0] = kind.max, kind.min
        weights = rng.integers(-128, 127, w, np.int8, endpoint=True)
        weights[0] = -128
        zero = np.asarray(kind.max - 9, kind.numpy)
        return image, zero, weights.astype(weight.numpy), rng.integers(-999, 999, w[0], np.int32)

    def reference(image: np.ndarray, zero: np.ndarray, weights: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        total = summed(image, int(zero), weights, steps, pads)
        return (total + offsets.reshape(-1, *(1,) * axes)).astype(result.numpy)

    types = (kind[x], kind[()], weight[w], tl.i32[w[0]], result[y])
    return Case(f"conv_bytes-{name}", lambda: conv_bytes(*types, **given), inputs, reference)


def conv_integer_case(name: str, zeros: tuple[int, ...]) -> Case:
    def reference(x: np.ndarray, w: np.ndarray, zero_x: np.ndarray, zero_w: np.ndarray) -> np.ndarray:
        apart = w.astype(np.int32) - zero_w.reshape(-1, 1, 1, 1)
        made = summed(x.astype(np.int32) - zero_x, 0, np.moveaxis(apart, 1, -1), (1, 2), (1, 0, 1, 1))
        return made.astype(np.int32)

    inputs = joined(
        integers(0, 255, (2, 4, 5, 6), dtype=np.uint8),
        integers(-128, 127, (6, 2, 3, 2), dtype=np.int8),
        integers(0, 255, (), dtype=np.uint8),
        integers(-9, 9, zeros, dtype=np.int8),
    )
    types = (tl.u8[2, 4, 5, 6], tl.i8[6, 2, 3, 2], tl.u8[()], tl.i8[zeros], tl.i32[2, 6, 5, 3])
    attrs = {"strides": (1, 2), "pads": (1, 0, 1, 1), "dilations": (1, 1), "groups": 2}
    return Case(f"conv_integer-{name}", lambda: conv_integer(*types, **attrs), inputs, reference)


BYTES = (tl.u8, tl.i8)
CASES = (
    quantize_case("u8", tl.u8, ()),
    quantize_case("i8", tl.i8, ()),
    quantize_case("rows", tl.u8, (3,)),
    dequantize_case("u8", tl.u8, ()),
    dequantize_case("rows", tl.i8, (3,)),
    Case(
        "dequantize_linear-plain",
        lambda: dequantize_linear(tl.i32[n], tl.f32[()], None, tl.f32[n], dtype=tl.f32),
        joined(integers(-999, 999, (50,), dtype=np.int32), normal(())),
        lambda x, scale: (x * scale).astype(np.float32),
    ),
    integer_case("plain", (5, 7), (7, 9), (), ()),
    integer_case("rows and columns", (5, 7), (7, 20), (5,), (20,)),
    integer_case("batches", (4, 7), (2, 7, 6), (), ()),
    requantize_case("u8", tl.u8, (3, 1)),
    requantize_case("i8", tl.i8, ()),
    Case(
        "add_dequantized",
        lambda: add_dequantized(tl.f32[n, m], tl.i8[n, m], tl.f32[()], tl.i8[()], tl.f32[n, m]),
        joined(
            normal((3, 40)),
            integers(-128, 128, (3, 40), dtype=np.int8),
            normal(()),
            integers(-9, 9, (), dtype=np.int8),
        ),
        lambda x, small, scale, zero: x + dequantized(small, scale, zero),
    ),
    conv_integer_case("one zero", ()),
    conv_integer_case("outputs", (6,)),
    *(bytes_case(f"points {x}", (2, 8, 3, 5), (6, 1, 1, 4), (2, 6, 3, 5), like=(x, tl.i8)) for x in BYTES),
    bytes_case("edges", (2, 6, 4, 6), (5, 3, 3, 6), (2, 5, 4, 6), like=(tl.u8, tl.i8), pads=(1, 1, 1, 1)),
    bytes_case(
        "steps", (1, 8, 8, 9), (6, 3, 2, 4), (1, 6, 4, 5), like=(tl.u8, tl.i16), strides=(2, 2), pads=(1, 0, 1, 1)
    ),
    bytes_case("apart", (2, 8, 5, 6), (6, 1, 1, 4), (2, 6, 3, 2), like=(tl.u8, tl.i8), strides=(2, 3)),
    bytes_case("line", (2, 8, 40), (4, 5, 8), (2, 4, 36), like=(tl.u8, tl.i8)),
    *(
        bytes_case(f"channels {x}", (1, 5, 9, 20), (5, 3, 3, 1), (1, 5, 9, 20), like=(x, tl.f32), pads=(1, 1, 1, 1))
        for x in BYTES
    ),
    bytes_case(
        "halves", (1, 3, 9, 21), (3, 3, 3, 1), (1, 3, 5, 11), like=(tl.i8, tl.f32), strides=(2, 2), pads=(1, 1, 1, 1)
    ),
    Case(
        "matmul_bytes",
        lambda: matmul_bytes(tl.u8[2, 5, n], tl.i8[n, 20], tl.i32[20], tl.i32[2, 5, 20]),
        joined(
            integers(0, 255, (2, 5, 7), dtype=np.uint8),
            integers(-128, 127, (7, 20), dtype=np.int8),
            integers(-999, 999, (20,), dtype=np.int32),
        ),
        lambda a, b, offsets: (a.astype(np.int32) @ b.astype(np.int32) + offsets).astype(np.int32),
    ),
    *map(bits_case, (2, 4, 8)),
)
