"""The meanings of operators that bring tensors to other extents, or between floats and small integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tirlite.graph.op import Attrs
from tirlite.graph.ops.scaling import Quantize, Resize
from tirlite.graph.reference.meaning import Array, Meaning


def _resize(attrs: Resize, x: Array) -> Array:
    y = x if attrs.mode == "nearest" or x.dtype == np.float64 else x.astype(np.float32)
    for axis, (old, new, scale) in enumerate(zip(x.shape, attrs.shape, attrs.scales, strict=True)):
        assert isinstance(new, int)
        if (old, scale or 1.0) == (new, 1.0):
            continue
        place = _places(attrs.coordinates, old, new, scale)
        if attrs.mode == "nearest":
            y = np.take(y, np.clip(_rounded(place, attrs.rounding), 0, old - 1).astype(np.int64), axis)
            continue
        if attrs.mode == "cubic":
            y = _cubic(y, axis, place, attrs.cubic)
            continue
        inside = np.clip(place, 0, old - 1)
        low = np.minimum(np.floor(inside).astype(np.int64), old - 1)
        share = (inside - low).reshape(-1, *(1,) * (x.ndim - 1 - axis)).astype(y.dtype)
        y = np.take(y, low, axis) * (1 - share) + np.take(y, np.minimum(low + 1, old - 1), axis) * share
    return np.asarray(y).astype(x.dtype)


def _cubic(y: Array, axis: int, place: Array, a: float) -> Array:
    """The sums of the four elements around each place, weighted by Keys' convolution; the edge goes on outside."""
    low = np.floor(place)
    total = np.zeros((), y.dtype)
    for step in range(-1, 3):
        x = np.abs(place - low - step)
        near = (a + 2) * x**3 - (a + 3) * x**2 + 1
        far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
        weight = np.where(x <= 1, near, np.where(x < 2, far, 0.0)).reshape(-1, *(1,) * (y.ndim - 1 - axis))
        at = np.clip(low + step, 0, y.shape[axis] - 1).astype(np.int64)
        total = total + np.take(y, at, axis) * weight.astype(y.dtype)
    return np.asarray(total)


def _places(coordinates: str, old: int, new: int, scale: float | None) -> Array:
    """Where each index of the result lies in the operand."""
    at = np.arange(new, dtype=np.float64)
    ratio = new / old if scale is None else scale
    if coordinates == "asymmetric":
        return at / ratio
    if coordinates == "align_corners":
        # The corners are those before the extent was cut to a whole number.
        return at * (old - 1) / max((new if scale is None else old * scale) - 1, 1)
    if coordinates == "pytorch_half_pixel" and new <= 1:
        return at * 0
    return (at + 0.5) / ratio - 0.5


def _rounded(place: Array, rounding: str) -> Array:
    if rounding == "round_prefer_floor":
        return np.ceil(place - 0.5)
    if rounding == "round_prefer_ceil":
        return np.floor(place + 0.5)
    return np.asarray(np.floor(place) if rounding == "floor" else np.ceil(place))


def _spread(each: Array, x: Array, axis: int) -> Array:
    """One number, or one for each index of an axis, so that it broadcasts against x."""
    if each.size == 1:
        return each.reshape(())
    return each.reshape(-1, *(1,) * (x.ndim - 1 - axis % x.ndim))


def _quantize_linear(attrs: Quantize, x: Array, scale: Array, zero: Array | None = None) -> Array:
    made = np.rint(x.astype(np.float32) / _spread(scale, x, attrs.axis).astype(np.float32))
    if zero is not None:
        made = made + _spread(zero, x, attrs.axis).astype(np.float32)
    return np.asarray(np.clip(np.nan_to_num(made), attrs.dtype.min, attrs.dtype.max)).astype(attrs.dtype.numpy)


def _dequantize_linear(attrs: Quantize, x: Array, scale: Array, zero: Array | None = None) -> Array:
    distance = x.astype(np.int32)
    if zero is not None:
        distance = distance - _spread(zero, x, attrs.axis).astype(np.int32)
    return np.asarray(distance.astype(scale.dtype) * _spread(scale, x, attrs.axis))


def _matmul_integer(attrs: Attrs, a: Array, b: Array, zero_a: Array, zero_b: Array) -> Array:
    left: Any = a.astype(np.int32) - (zero_a.reshape(-1, 1) if zero_a.size > 1 else zero_a.reshape(())).astype(np.int32)
    right: Any = b.astype(np.int32) - (zero_b if zero_b.size > 1 else zero_b.reshape(())).astype(np.int32)
    return np.asarray(left @ right)


SCALING: dict[str, Meaning] = {
    "dequantize_linear": _dequantize_linear,
    "matmul_integer": _matmul_integer,
    "quantize_linear": _quantize_linear,
    "resize": _resize,
}
