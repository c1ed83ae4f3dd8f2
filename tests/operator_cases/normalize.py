"""Cases of the kernels of `tirlite.kernels.operators.normalize`."""

from __future__ import annotations

import numpy as np
from operator_cases.case import Case, normal

import tirlite as tl
from tirlite.ir import DType
from tirlite.kernels.operators.normalize import batch_norm, instance_norm, layer_norm, lrn


def per_channel(values: np.ndarray, x: np.ndarray) -> np.ndarray:
    return values.astype(np.float64).reshape(-1, *(1,) * (x.ndim - 2))


def batch_reference(x, scale, bias, mean, *variance) -> np.ndarray:
    factor = per_channel(scale, x)
    if variance:
        factor = factor / np.sqrt(per_channel(variance[0], x) + 1e-5)
    return ((x - per_channel(mean, x)) * factor + per_channel(bias, x)).astype(x.dtype)


def standardized(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=axes, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=axes, keepdims=True) + 1e-5)


def instance_reference(x, scale, bias) -> np.ndarray:
    made = standardized(x, tuple(range(2, x.ndim)))
    return (made * per_channel(scale, x) + per_channel(bias, x)).astype(x.dtype)


def lrn_reference(x: np.ndarray) -> np.ndarray:
    squares = np.pad(x.astype(np.float64) ** 2, ((0, 0), (1, 2), *((0, 0),) * (x.ndim - 2)))
    summed = np.lib.stride_tricks.sliding_window_view(squares, 4, axis=1).sum(axis=-1)
    return (x / (2 + 0.1 / 4 * summed) ** 0.75).astype(x.dtype)


def layer_case(name: str, shape: tuple, axis: int, scale: tuple, *, bias: bool = True, **sizes: int) -> Case:
    """A case of `layer_norm` at shapes whose dims take their sizes by name."""
    given = tuple(sizes[each.name] if isinstance(each, tl.ir.Var) else each for each in shape)
    types = (tl.f32[shape], tl.f32[scale], tl.f32[scale] if bias else None, tl.f32[shape])

    def reference(x: np.ndarray, scale: np.ndarray, *bias: np.ndarray) -> np.ndarray:
        made = standardized(x, tuple(range(axis % x.ndim, x.ndim))) * scale
        return (made + bias[0] if bias else made).astype(x.dtype)

    inputs = normal(given, scale, *([scale] if bias else []))
    return Case(f"layer_norm-{name}", lambda: layer_norm(*types, axis=axis), inputs, reference, 1e-5)


def channel_case(function, reference, name: str, shape: tuple, operands: int, dtype: DType = tl.f32) -> Case:
    """A case of an operator with some operands that have one element for each channel; the last is positive."""
    channels = (shape[1],)

    def make(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        *others, last = normal(shape, *[channels] * operands, dtype=dtype.numpy.type)(rng)
        return (*others, np.abs(last) if operands == 4 else last)

    absent = [None] if function is batch_norm and operands == 3 else []
    types = [dtype[shape], *[dtype[channels]] * operands, *absent, dtype[shape]]
    tolerance = 2e-3 if dtype is tl.f16 else 1e-5
    return Case(f"{function.__name__}-{name}", lambda: function(*types), make, reference, tolerance)


n, m = tl.dims("n m")


CASES = (
    channel_case(batch_norm, batch_reference, "image", (2, 3, 4, 5), 4),
    channel_case(batch_norm, batch_reference, "row", (4, 3), 4),
    channel_case(batch_norm, batch_reference, "factor", (2, 3, 9), 3),
    channel_case(batch_norm, batch_reference, "f16", (2, 3, 9), 4, tl.f16),
    channel_case(instance_norm, instance_reference, "image", (2, 3, 9, 9), 2),
    channel_case(instance_norm, instance_reference, "f64", (2, 3, 5), 2, tl.f64),
    layer_case("rows", (3, 70), -1, (70,)),
    layer_case("symbolic", (n, m, 8), -1, (8,), n=2, m=3),
    layer_case("two axes", (2, 3, 4), 1, (3, 4)),
    layer_case("broadcast", (2, 3, 4), -2, (3, 1), bias=False),
    layer_case("one scale", (2, 5), 1, ()),
    Case(
        "lrn",
        lambda: lrn(tl.f32[2, 5, n, m], tl.f32[2, 5, n, m], size=4, alpha=0.1, bias=2.0),
        normal((2, 5, 3, 25)),
        lrn_reference,
        1e-6,
    ),
)
