"""The builder's methods for convolutions and pools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tirlite.graph.builder.calls import CallBuilder, Operand
from tirlite.graph.expr import Call, Expr, TupleGetItem
from tirlite.graph.extents import Extent, size_of
from tirlite.graph.op import ShapeMismatch
from tirlite.graph.ops import Conv, ConvTranspose, Pool
from tirlite.sizes import Size

Steps: TypeAlias = "int | Sequence[int]"
Padding: TypeAlias = "Extent | Sequence[Extent]"


class ConvolutionBuilder(CallBuilder):
    """Windows that move over the axes behind the second one of `[batch, channels, *spatial]`.

    A single number stands for all spatial axes. `pad` takes a number, one for each axis, or two for each axis: what is
    added before each of them, and then what is added behind each.
    """

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
        axes = _spatial_axes(image)
        attrs = Conv(_steps(stride, axes), _pads(pad, axes), _steps(dilation, axes), groups)
        return self.call("conv", image, *rest, attrs=attrs)

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
        """The transpose of a convolution, with weights `[inputs, outputs / groups, *window]`."""
        image, *rest = self._operands([x, weight, *([] if bias is None else [bias])], self._here())
        axes = _spatial_axes(image)
        steps, dilations, extra = _steps(stride, axes), _steps(dilation, axes), _steps(output_padding, axes)
        attrs = ConvTranspose(steps, _pads(pad, axes), dilations, groups, extra)
        return self.call("conv_transpose", image, *rest, attrs=attrs)

    def max_pool(
        self,
        x: Operand,
        window: Steps,
        *,
        stride: Steps | None = None,
        pad: Padding = 0,
        dilation: Steps = 1,
        ceil_mode: bool = False,
    ) -> Call:
        """The greatest element in each window. The stride is that of the window where none is given."""
        (image,) = self._operands([x], self._here())
        attrs = _pool(image, window, stride, pad, dilation, ceil_mode=ceil_mode, count_include_pad=False)
        return self.call("max_pool", image, attrs=attrs)

    def max_pool_indices(
        self,
        x: Operand,
        window: Steps,
        *,
        stride: Steps | None = None,
        pad: Padding = 0,
        dilation: Steps = 1,
        ceil_mode: bool = False,
    ) -> tuple[TupleGetItem, TupleGetItem]:
        """As `max_pool`, and where in its channel each element was found, as i64: the first of equal ones."""
        (image,) = self._operands([x], self._here())
        attrs = _pool(image, window, stride, pad, dilation, ceil_mode=ceil_mode, count_include_pad=False)
        call = self.call("max_pool_indices", image, attrs=attrs)
        return self.item(call, 0), self.item(call, 1)

    def average_pool(
        self,
        x: Operand,
        window: Steps,
        *,
        stride: Steps | None = None,
        pad: Padding = 0,
        dilation: Steps = 1,
        ceil_mode: bool = False,
        count_include_pad: bool = False,
    ) -> Call:
        """The mean of the elements in each window; the padding counts, as zeros, where asked for."""
        (image,) = self._operands([x], self._here())
        attrs = _pool(image, window, stride, pad, dilation, ceil_mode=ceil_mode, count_include_pad=count_include_pad)
        return self.call("average_pool", image, attrs=attrs)

    def global_max_pool(self, x: Operand) -> Call:
        """The greatest element of each channel; the spatial axes stay with extent 1."""
        return self.call("global_max_pool", x)

    def global_average_pool(self, x: Operand) -> Call:
        """The mean of each channel; the spatial axes stay with extent 1."""
        return self.call("global_average_pool", x)


def _pool(
    image: Expr,
    window: Steps,
    stride: Steps | None,
    pad: Padding,
    dilation: Steps,
    *,
    ceil_mode: bool,
    count_include_pad: bool,
) -> Pool:
    axes = _spatial_axes(image)
    steps = _steps(window if stride is None else stride, axes)
    dilations = _steps(dilation, axes)
    return Pool(_steps(window, axes), steps, _pads(pad, axes), dilations, ceil_mode, count_include_pad)


def _spatial_axes(image: Expr) -> int:
    """How many there are; the inference complains where there are none."""
    return max(image.tensor.rank - 2, 1)


def _steps(given: Steps, axes: int) -> tuple[int, ...]:
    return (given,) * axes if isinstance(given, int) else tuple(given)


def _pads(given: Padding, axes: int) -> tuple[Size, ...]:
    if not isinstance(given, Sequence):
        return (size_of(given),) * (2 * axes)
    sizes = tuple(size_of(each) for each in given)
    return sizes * 2 if len(sizes) == axes else sizes
