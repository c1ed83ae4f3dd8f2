"""Quantization and dequantization, and integer products and convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tirlite.graph.builder.calls import CallBuilder, Operand, operator
from tirlite.graph.expr import Call
from tirlite.graph.op import Array, Attrs, Lowering, Op, Site
from tirlite.graph.operators.convolution import Conv, conv, conv_given, convolved, weights
from tirlite.graph.operators.operands import INTEGERS, broadcast, broadcast_into, contracted
from tirlite.graph.operators.windows import Padding, Steps
from tirlite.graph.types import TensorType
from tirlite.ir import DType, f32, i32, u8
from tirlite.kernels.operators.formulas import dequantized, quantized, requantized, with_dequantized
from tirlite.record import record


@record
class Quantize(Attrs):
    """The axis of scales and zero points, if there are several, and the element type of the result."""

    dtype: DType
    axis: int = 1


@record
class Requantize(Attrs):
    """The type of the result."""

    dtype: DType


@record
class Bits(Attrs):
    """The number of bits of an integer."""

    width: int


def _along(site: Site, attrs: Quantize) -> TensorType:
    """The type of the operand, after a check that scale and zero point are scalars or vectors along the axis."""
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


def _demand_small(site: Site, dtype: DType) -> None:
    if not dtype.is_integer or dtype.bits > 16:
        raise site.bad_attribute(f"{dtype} is not an integer type of 8 or 16 bits")


def _demand_bytes(site: Site, *given: TensorType) -> None:
    for each in given:
        if not each.dtype.is_integer or each.dtype.bits != 8:
            raise site.wrong_type(f"the elements must be integers of 8 bits, and are {each.dtype}")


def _quantize_linear_type(site: Site, attrs: Quantize) -> TensorType:
    x = _along(site, attrs)
    if not x.dtype.is_float and x.dtype != i32:
        raise site.wrong_type(f"the elements must be of a float type or i32, and are {x.dtype}")
    _demand_small(site, attrs.dtype)
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
    _demand_bytes(site, a, b)
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


def _requantize_type(site: Site, attrs: Requantize) -> TensorType:
    total, factor, zero = site.tensors()
    _demand_small(site, attrs.dtype)
    if not factor.dtype.is_float or zero.dtype != attrs.dtype or zero.rank:
        raise site.wrong_type(f"the factor must be a float, and the zero point one {attrs.dtype}")
    broadcast_into(site, factor, total.shape)
    return TensorType(total.shape, attrs.dtype)


def _conv_integer_type(site: Site, attrs: Conv) -> TensorType:
    _demand_bytes(site, *site.tensors()[:2])
    for number, each in enumerate(site.tensors()[:2], 2):
        if site.tensor(number).dtype != each.dtype:
            raise site.wrong_type(f"a zero point is {site.tensor(number).dtype}, its operand {each.dtype}")
    weight, zero = weights(site, attrs), site.tensor(3)
    if site.tensor(2).rank or zero.rank > 1 or (zero.rank and not site.is_equal(zero.shape[0], weight.shape[0])):
        raise site.mismatch("a zero point must be one number, or that of weights one for each output")
    return TensorType(convolved(site, attrs, *weight.shape), i32)


def _conv_bytes_type(site: Site, attrs: Conv) -> TensorType:
    outputs, *window, _ = site.tensor(2).shape
    shape = convolved(site, attrs, outputs, site.tensor(0).shape[1] // attrs.groups, *window)
    return TensorType(shape, f32 if site.tensor(2).dtype.is_float else i32)


def _matmul_bytes_type(site: Site, attrs: Attrs) -> TensorType:
    a, b, _ = site.tensors()
    return TensorType((*broadcast(site, [a.shape[:-2], b.shape[:-2]]), a.shape[-2], b.shape[-1]), i32)


def _matmul_bits_type(site: Site, attrs: Bits) -> TensorType:
    a, weights, *others = site.tensors()
    if weights.rank != 4 or weights.dtype != u8 or {each.dtype for each in (a, *others)} != {f32}:
        raise site.mismatch("operand 1 must have 4 axes, of u8, and the others must be of f32")
    panels, blocks, lines, size = weights.shape
    contracted(site, a.shape[-1], blocks * lines * (8 // attrs.width))
    for number, each in enumerate(others, 2):
        if each.rank != 3 or not all(map(site.is_equal, each.shape, (panels, blocks, size))):
            raise site.mismatch(f"operand {number} must be {TensorType((panels, blocks, size), f32)}")
    return TensorType((*a.shape[:-1], panels * size), f32)


def _add_dequantized_type(site: Site, attrs: Attrs) -> TensorType:
    x, small, _, _ = site.tensors()
    return TensorType(broadcast(site, [x.shape, small.shape]), f32)


# Dequantizes integers as they are added, without storing floats.
ADD_DEQUANTIZED = Op(
    "add_dequantized",
    _add_dequantized_type,
    4,
    4,
    lowering=Lowering("quantize.add_dequantized", formula=with_dequantized),
)

# Integer convolution and product with constant weights; see `tirlite.kernels.operators.byte_sums`.
CONV_BYTES = Op("conv_bytes", _conv_bytes_type, 4, 4, Conv, lowering=Lowering("byte_sums.conv_bytes"))
MATMUL_BYTES = Op("matmul_bytes", _matmul_bytes_type, 3, 3, lowering=Lowering("byte_sums.matmul_bytes"))


def _spread(each: Array, x: Array, axis: int) -> Array:
    """A scalar, or a vector along an axis in a shape that broadcasts against x."""
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


def _matmul_bits(attrs: Bits, a: Array, weights: Array, scale: Array, zero: Array) -> Array:
    places = np.arange(0, 8, attrs.width, dtype=np.uint8)[:, None]
    panels, blocks, _, size = weights.shape
    whole = (weights[..., None, :] >> places & ((1 << attrs.width) - 1)).reshape(panels, blocks, -1, size)
    floats = (whole - zero[:, :, None]) * scale[:, :, None]
    return np.asarray(a @ np.moveaxis(floats, 0, 2).reshape(a.shape[-1], panels * size))


def _requantize(attrs: Requantize, total: Array, factor: Array, zero: Array) -> Array:
    made = np.rint(total.astype(np.float32) * factor.astype(np.float32)) + zero.astype(np.float32)
    return np.asarray(np.clip(np.nan_to_num(made), attrs.dtype.min, attrs.dtype.max)).astype(attrs.dtype.numpy)


def _conv_integer(attrs: Conv, x: Array, weight: Array, zero_x: Array, zero_w: Array) -> Array:
    points = zero_w.reshape(-1, *(1,) * (weight.ndim - 1)) if zero_w.ndim else zero_w
    return conv(attrs, x.astype(np.int32) - zero_x.astype(np.int32), weight.astype(np.int32) - points.astype(np.int32))


class Quantization(CallBuilder):
    """Floats as small integers."""

    @operator(
        _quantize_linear_type,
        _quantize_linear,
        Lowering("quantize.quantize_linear", formula=quantized, aligned="axis"),
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
        Lowering("quantize.dequantize_linear", formula=dequantized, aligned="axis"),
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
        """`(a - zero_a) @ (b - zero_b)` of 8-bit integers, in i32; zero points are scalars, or per row or column."""
        return self.call("matmul_integer", a, b, zero_a, zero_b)

    @operator(_matmul_bits_type, _matmul_bits, "byte_sums.matmul_bits", least=4, attrs=Bits)
    def matmul_bits(self, a: Operand, b: Operand, scale: Operand, zero: Operand, *, bits: int = 4) -> Call:
        """The product of a and `(b - zero) * scale`, where b has integers of `bits` bits, packed into panels.

        b is `[panels, blocks of terms, bytes of a block, columns of a panel]`; a byte holds neighbouring terms, the
        first in the lowest bits. scale and zero are `[panels, blocks, columns]`.
        """
        return self.call("matmul_bits", a, b, scale, zero, attrs=Bits(bits))

    @operator(_conv_integer_type, _conv_integer, "quantize.conv_integer", least=4, attrs=Conv)
    def conv_integer(
        self,
        x: Operand,
        weight: Operand,
        zero_x: Operand,
        zero_w: Operand,
        *,
        stride: Steps = 1,
        pad: Padding = 0,
        dilation: Steps = 1,
        groups: int = 1,
    ) -> Call:
        """The convolution of `x - zero_x` with `weight - zero_w` of 8-bit integers, in i32.

        The zero point of the weights is a scalar, or has one number per output channel.
        """
        image, *rest = self._operands([x, weight, zero_x, zero_w], self._here())
        return self.call("conv_integer", image, *rest, attrs=conv_given(image, stride, pad, dilation, groups))

    @operator(
        _requantize_type,
        _requantize,
        Lowering("quantize.requantize", formula=requantized),
        least=3,
        attrs=Requantize,
    )
    def requantize(self, total: Operand, factor: Operand, zero: Operand, *, dtype: DType = u8) -> Call:
        """`total * factor` rounded to nearest even, plus a zero point of type `dtype`, saturated."""
        return self.call("requantize", total, factor, zero, attrs=Requantize(dtype))
