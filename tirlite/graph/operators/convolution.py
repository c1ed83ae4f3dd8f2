"""Convolutions and their transposes, over any number of spatial axes.

Tensors are `[batch, channels, *spatial]`, weights `[outputs, inputs of a group, *window]`.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np

from tirlite.graph.builder.calls import CallBuilder, Operand, operator
from tirlite.graph.expr import Call, Expr
from tirlite.graph.extents import Shape
from tirlite.graph.op import Array, Attrs, Lowering, ShapeMismatch, Site
from tirlite.graph.operators.operands import NUMBERS, contracted
from tirlite.graph.operators.windows import (
    Padding,
    Steps,
    every,
    pads_given,
    pads_of,
    pairs,
    slid,
    spatial_axes,
    steps_of,
    windowed,
    windows,
)
from tirlite.graph.types import TensorType
from tirlite.record import record
from tirlite.sizes import Size


@record
class Conv(Attrs):
    """Strides, padding and dilations of the window, and the number of groups of channels.

    With `same`, "upper" or "lower", the result has the extents of the tensor over the strides, rounded up: `pads` are
    0, and the padding for that is split evenly; an odd element goes after the tensor ("upper") or before it.
    """

    strides: tuple[int, ...]
    pads: tuple[Size, ...]
    dilations: tuple[int, ...]
    groups: int = 1
    same: str = field(default="", kw_only=True)


@record
class ConvTranspose(Conv):
    """The attributes of the transposed convolution, and the extents added after each spatial axis of the result."""

    output_padding: tuple[int, ...] = ()


def _weights(site: Site, attrs: Conv) -> TensorType:
    NUMBERS.shared(site)
    return weights(site, attrs)


def weights(site: Site, attrs: Conv) -> TensorType:
    """The type of the second operand, after a check of its rank and of the groups."""
    weight = site.tensor(1)
    if weight.rank != site.tensor(0).rank:
        raise site.mismatch("operands 0 and 1 must have as many axes")
    if attrs.groups < 1:
        raise site.bad_attribute("groups must be positive")
    return weight


def _check_bias(site: Site, outputs: Size) -> None:
    if len(site.args) > 2:
        bias = site.tensor(2)
        if bias.rank != 1 or not site.is_equal(bias.shape[0], outputs):
            raise site.mismatch(f"the bias must have {outputs} elements")


def _conv_type(site: Site, attrs: Conv) -> TensorType:
    weight = _weights(site, attrs)
    made = convolved(site, attrs, *weight.shape)
    _check_bias(site, weight.shape[0])
    return TensorType(made, site.tensor(0).dtype)


def convolved(site: Site, attrs: Conv, outputs: Size, taken: Size, *window: Size) -> Shape:
    """The result shape of a convolution of the first operand; `taken` is the number of input channels per group."""
    x = windowed(site, attrs)
    contracted(site, x.shape[1], taken * attrs.groups)
    if isinstance(outputs, int) and outputs % attrs.groups:
        raise site.mismatch(f"{outputs} channels do not divide into {attrs.groups} groups")
    return (x.shape[0], outputs, *slid(site, x.shape[2:], window, attrs))


def _conv_transpose_type(site: Site, attrs: ConvTranspose) -> TensorType:
    weight = _weights(site, attrs)
    made = transposed(site, attrs, *weight.shape)
    _check_bias(site, made[1])
    return TensorType(made, site.tensor(0).dtype)


def transposed(site: Site, attrs: ConvTranspose, taken: Size, outputs: Size, *window: Size) -> Shape:
    """The result shape of a transposed convolution: `taken` input channels, `outputs` output channels per group."""
    x = windowed(site, attrs)
    if attrs.same:
        raise site.bad_attribute("a transposed convolution is told its pads")
    contracted(site, x.shape[1], taken)
    axes = x.rank - 2
    extra = attrs.output_padding or (0,) * axes
    if len(extra) != axes:
        raise site.bad_attribute(f"output_padding has {len(extra)} entries, and there are {axes} spatial axes")
    spatial = tuple(
        attrs.strides[i] * (x.shape[2 + i] - 1)
        + attrs.dilations[i] * (window[i] - 1)
        + (1 + extra[i] - attrs.pads[i] - attrs.pads[axes + i])
        for i in range(axes)
    )
    for axis, extent in enumerate(spatial):
        if not site.is_most(0, extent):
            raise site.mismatch(f"spatial axis {axis} would have {extent} elements")
    return (x.shape[0], outputs * attrs.groups, *spatial)


def conv(attrs: Conv, x: Array, weight: Array, bias: Array | None = None) -> Array:
    """The convolution in NumPy."""
    padded = np.pad(x, pairs(pads_of(attrs, x.shape[2:], weight.shape[2:])))
    seen = windows(padded, weight.shape[2:], attrs.strides, attrs.dilations)
    axes = x.ndim - 2
    parts = []
    for channels, kernel in zip(np.split(seen, attrs.groups, 1), np.split(weight, attrs.groups, 0), strict=True):
        summed = [1, *range(2 + axes, 2 + 2 * axes)]
        parts.append(np.tensordot(channels, kernel, (summed, [1, *range(2, 2 + axes)])))
    return _with_bias(np.moveaxis(np.concatenate(parts, -1), -1, 1), bias)


def _with_bias(result: Array, bias: Array | None) -> Array:
    return result if bias is None else np.asarray(result + bias.reshape(-1, *(1,) * (result.ndim - 2)))


def _conv_transpose(attrs: ConvTranspose, x: Array, weight: Array, bias: Array | None = None) -> Array:
    """The convolution of x, dilated by the strides, with reversed windows."""
    axes = x.ndim - 2
    extents = [(extent - 1) * step + 1 for extent, step in zip(x.shape[2:], attrs.strides, strict=True)]
    spaced = np.zeros((*x.shape[:2], *extents), x.dtype)
    spaced[(slice(None), slice(None), *every(attrs.strides))] = x
    turned = weight[(slice(None), slice(None), *every([-1] * axes))]
    # [inputs, outputs of a group] becomes [outputs, inputs of a group].
    groups = np.split(turned, attrs.groups, 0)
    kernel = np.concatenate([np.swapaxes(group, 0, 1) for group in groups], 0)
    extra = attrs.output_padding or (0,) * axes
    reach = [d * (k - 1) for k, d in zip(weight.shape[2:], attrs.dilations, strict=True)]
    wide = (*reach, *(r + e for r, e in zip(reach, extra, strict=True)))
    full = conv(Conv((1,) * axes, wide, attrs.dilations, attrs.groups), spaced, kernel)
    cuts = zip(pairs(attrs.pads), full.shape, strict=True)
    return _with_bias(full[tuple(slice(before, end - behind) for (before, behind), end in cuts)], bias)


def conv_given(image: Expr, stride: Steps, pad: Padding, dilation: Steps, groups: int) -> Conv:
    """The attributes of a convolution as a caller gives them."""
    axes = spatial_axes(image)
    return Conv(steps_of(stride, axes), pads_given(pad, axes), steps_of(dilation, axes), groups)


class Convolution(CallBuilder):
    """Convolutions over the spatial axes of `[batch, channels, *spatial]`.

    A single number stands for all spatial axes. `pad` is one number, one per axis, or two per axis: first the padding
    before each axis, then the padding after each.
    """

    @operator(_conv_type, conv, "conv.conv", least=2, most=3, attrs=Conv)
    def conv(
        self,
        x: Operand,
        weight: Operand,
        bias: Operand | None = None,
        *,
        stride: Steps = 1,
        pad: Padding = 0,
        dilation: Steps = 1,
        groups: int = 1,
    ) -> Call:
        """The convolution with weights `[outputs, inputs / groups, *window]`, over any number of spatial axes."""
        image, *rest = self._operands([x, weight, *([] if bias is None else [bias])], self._here())
        return self.call("conv", image, *rest, attrs=conv_given(image, stride, pad, dilation, groups))

    def conv2d(
        self,
        x: Operand,
        weight: Operand,
        bias: Operand | None = None,
        *,
        stride: Steps = 1,
        pad: Padding = 0,
        dilation: Steps = 1,
        groups: int = 1,
    ) -> Call:
        """The convolution of `[batch, channels, height, width]`. Raises GraphError for any other number of axes."""
        image, *_ = self._operands([x, weight], self._here())
        if image.tensor.rank != 4:
            why = "operand 0 must be [batch, channels, height, width]; `conv` takes any number of spatial axes"
            raise ShapeMismatch(f"conv2d({image.tensor})", why, span=self._here()).error()
        return self.conv(image, weight, bias, stride=stride, pad=pad, dilation=dilation, groups=groups)

    @operator(
        _conv_transpose_type,
        _conv_transpose,
        Lowering("conv.conv_transpose", said=("output_padding",)),
        least=2,
        most=3,
        attrs=ConvTranspose,
    )
    def conv_transpose(
        self,
        x: Operand,
        weight: Operand,
        bias: Operand | None = None,
        *,
        stride: Steps = 1,
        pad: Padding = 0,
        dilation: Steps = 1,
        groups: int = 1,
        output_padding: Steps = 0,
    ) -> Call:
        """The transposed convolution with weights `[inputs, outputs / groups, *window]`."""
        image, *rest = self._operands([x, weight, *([] if bias is None else [bias])], self._here())
        plain = conv_given(image, stride, pad, dilation, groups)
        extra = steps_of(output_padding, spatial_axes(image))
        attrs = ConvTranspose(plain.strides, plain.pads, plain.dilations, groups, extra)
        return self.call("conv_transpose", image, *rest, attrs=attrs)
