"""Operators that bring tensors to other extents, or between floats and small integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tirlite.graph.builder.calls import CallBuilder, Operand
from tirlite.graph.builder.declare import operator
from tirlite.graph.expr import Call
from tirlite.graph.extents import Extent, Shape, shape_of
from tirlite.graph.op import Array, Attrs, Lowering, Site
from tirlite.graph.operators.broadcast import broadcast, contracted
from tirlite.graph.operators.elements import INTEGERS
from tirlite.graph.types import TensorType
from tirlite.ir import DType, i32, u8
from tirlite.record import record
from tirlite.sizes import Proof, prove_le

COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")


ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


@record
class Resize(Attrs):
    """The extents of the result; over those of the operand as they were given, where they were (else None); the way.

    `mode` is "nearest", with a `rounding`, "linear", or "cubic", by Keys' convolution with this coefficient;
    `coordinates` says where an element of the result lies.
    """

    shape: Shape
    scales: tuple[float | None, ...]
    mode: str = "nearest"
    coordinates: str = "half_pixel"
    rounding: str = "round_prefer_floor"
    cubic: float = -0.75


@record
class Quantize(Attrs):
    """The axis that scales and zero points count along, where there are several, and the type of the result."""

    dtype: DType
    axis: int = 1


def _resize_type(site: Site, attrs: Resize) -> TensorType:
    x = site.tensor(0)
    for name, given in (("shape", attrs.shape), ("scales", attrs.scales)):
        if len(given) != x.rank:
            raise site.bad_attribute(f"{name} has {len(given)} entries, and there are {x.rank} axes")
    for name, text, known in (
        ("mode", attrs.mode, ("nearest", "linear", "cubic")),
        ("coordinates", attrs.coordinates, COORDINATES),
        ("rounding", attrs.rounding, ROUNDINGS),
    ):
        if text not in known:
            raise site.bad_attribute(f"{name} must be one of {', '.join(known)}")
    if any(prove_le(0, extent) is Proof.NO for extent in attrs.shape):
        raise site.bad_attribute("extents must not be negative")
    return TensorType(attrs.shape, x.dtype)


def _along(site: Site, attrs: Quantize) -> TensorType:
    """The operand, once scale and zero point are found to be one number each, or one for each index of the axis."""
    x = site.tensor(0)
    for number, each in enumerate(site.tensors()[1:], 1):
        if each.rank > 1:
            raise site.mismatch(f"operand {number} must be one number, or have one axis")
        if each.rank == 1 and each.shape[0] != 1:
            extent = x.shape[site.axis(attrs.axis, x.rank)]
            if not site.is_equal(each.shape[0], extent):
                raise site.mismatch(
                    f"operand {number} must have one number for each of {extent} along axis {attrs.axis}"
                )
    return x


def _quantize_linear_type(site: Site, attrs: Quantize) -> TensorType:
    x = _along(site, attrs)
    if not x.dtype.is_float and x.dtype != i32:
        raise site.wrong_type(f"the elements must be of a float type or i32, and are {x.dtype}")
    if not attrs.dtype.is_integer or attrs.dtype.bits > 16:
        raise site.bad_attribute(f"{attrs.dtype} is not an integer type of 8 or 16 bits")
    if len(site.args) > 2 and site.tensor(2).dtype != attrs.dtype:
        raise site.wrong_type(f"the zero point is {site.tensor(2).dtype}, the result {attrs.dtype}")
    return TensorType(x.shape, attrs.dtype)


def _dequantize_linear_type(site: Site, attrs: Quantize) -> TensorType:
    x = _along(site, attrs)
    INTEGERS.demand(site, x.dtype)
    if not attrs.dtype.is_float or site.tensor(1).dtype != attrs.dtype:
        raise site.bad_attribute(
            f"scale and result must have one float type, not {site.tensor(1).dtype}, {attrs.dtype}"
        )
    if len(site.args) > 2 and site.tensor(2).dtype != x.dtype:
        raise site.wrong_type(f"the zero point is {site.tensor(2).dtype}, the elements {x.dtype}")
    return TensorType(x.shape, attrs.dtype)


def _matmul_integer_type(site: Site, attrs: Attrs) -> TensorType:
    a, b, zero_a, zero_b = site.tensors()
    for each in (a, b):
        if not each.dtype.is_integer or each.dtype.bits != 8:
            raise site.wrong_type(f"the elements must be integers of 8 bits, and are {each.dtype}")
    if a.rank < 2 or b.rank < 2:
        raise site.mismatch("operands 0 and 1 must be matrices")
    contracted(site, a.shape[-1], b.shape[-2])
    for zero, of in ((zero_a, a), (zero_b, b)):
        if zero.dtype != of.dtype:
            raise site.wrong_type(f"a zero point is {zero.dtype}, its operand {of.dtype}")
        if zero.rank > 1:
            raise site.mismatch("a zero point must be one number, or have one axis")
    batch = broadcast(site, [a.shape[:-2], b.shape[:-2]])
    return TensorType((*batch, a.shape[-2], b.shape[-1]), i32)


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


class Scaling(CallBuilder):
    """Elements at other places, or in other steps."""

    @operator(_resize_type, _resize, Lowering("resize.resize", said=("shape",)), attrs=Resize)
    def resize(
        self,
        x: Operand,
        shape: Sequence[Extent],
        *,
        scales: Sequence[float | None] | None = None,
        mode: str = "nearest",
        coordinates: str = "half_pixel",
        rounding: str = "round_prefer_floor",
        cubic: float = -0.75,
    ) -> Call:
        """x at other extents, by the "nearest" element, "linear" or "cubic" between neighbours; places as in ONNX."""
        given = (None,) * len(shape) if scales is None else tuple(scales)
        attrs = Resize(shape_of(shape, self._here()), given, mode, coordinates, rounding, cubic)
        return self.call("resize", x, attrs=attrs)

    @operator(
        _quantize_linear_type,
        _quantize_linear,
        Lowering("quantize.quantize_linear", said=("dtype",)),
        least=2,
        most=3,
        attrs=Quantize,
    )
    def quantize_linear(
        self, x: Operand, scale: Operand, zero: Operand | None = None, *, axis: int = 1, dtype: DType = u8
    ) -> Call:
        """x / scale rounded to nearest even, plus a zero point of type `dtype`, saturated."""
        return self.call("quantize_linear", x, scale, *(() if zero is None else (zero,)), attrs=Quantize(dtype, axis))

    @operator(
        _dequantize_linear_type,
        _dequantize_linear,
        Lowering("quantize.dequantize_linear", said=("dtype",)),
        least=2,
        most=3,
        attrs=Quantize,
    )
    def dequantize_linear(self, x: Operand, scale: Operand, zero: Operand | None = None, *, axis: int = 1) -> Call:
        """(x - zero) * scale, of the type of the scale."""
        factor = self._operand(scale, None, self._here())
        attrs = Quantize(factor.dtype, axis)
        return self.call("dequantize_linear", x, factor, *(() if zero is None else (zero,)), attrs=attrs)

    @operator(_matmul_integer_type, _matmul_integer, "quantize.matmul_integer", least=4)
    def matmul_integer(self, a: Operand, b: Operand, zero_a: Operand, zero_b: Operand) -> Call:
        """`(a - zero_a) @ (b - zero_b)` of integers of 8 bits, in i32; a zero point of a row, of a column, or one."""
        return self.call("matmul_integer", a, b, zero_a, zero_b)
