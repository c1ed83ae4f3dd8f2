"""Pooling operators: the maximum or the mean of each window, or of each channel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np

from tirlite.graph.builder.calls import CallBuilder, Operand, operator
from tirlite.graph.expr import Call, Expr, TupleGetItem
from tirlite.graph.op import OPS, Array, Attrs, Lowering, Meaning, Site, Spelling, plain
from tirlite.graph.operators.operands import FLOATS
from tirlite.graph.operators.windows import (
    Padding,
    Steps,
    pads_given,
    pads_of,
    pairs,
    slid,
    spatial_axes,
    steps_of,
    windowed,
    windows,
)
from tirlite.graph.types import TensorType, TupleType
from tirlite.ir import PrimFunc, TensorType as KernelType, i64
from tirlite.record import record, replace
from tirlite.sizes import Size


@record
class Pool(Attrs):
    """The window, its strides, padding and dilations; ceil mode; and whether padding counts.

    `same` is that of Conv.
    """

    window: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[Size, ...]
    dilations: tuple[int, ...]
    ceil_mode: bool = False
    count_include_pad: bool = False
    same: str = field(default="", kw_only=True)


def _pool_type(site: Site, attrs: Pool) -> TensorType:
    x = windowed(site, attrs)
    if len(attrs.window) != x.rank - 2 or any(size < 1 for size in attrs.window):
        raise site.bad_attribute(f"the window must have {x.rank - 2} positive extents")
    return TensorType((*x.shape[:2], *slid(site, x.shape[2:], attrs.window, attrs, ceil=attrs.ceil_mode)), x.dtype)


def _max_pool_indices_type(site: Site, attrs: Pool) -> TupleType:
    made = _pool_type(site, attrs)
    return TupleType((made, TensorType(made.shape, i64)))


def _average_pool_type(site: Site, attrs: Pool) -> TensorType:
    FLOATS.first(site)
    return _pool_type(site, attrs)


def _global_pool_type(site: Site, attrs: Attrs) -> TensorType:
    x = site.tensor(0)
    if x.rank < 3 or not x.dtype.is_float:
        raise site.wrong_type("operand 0 must have a batch axis, a channel axis and spatial ones, of a float type")
    return TensorType((*x.shape[:2], *(1,) * (x.rank - 2)), x.dtype)


def _padded(attrs: Pool, x: Array, fill: Any, beyond: Any) -> Array:
    """x with its padding of `fill`, and with `beyond` where windows in ceil mode reach further."""
    result = np.pad(x, pairs(attrs.pads), constant_values=fill)
    if attrs.ceil_mode:
        more = [-(n - d * (k - 1) - 1) % s for n, k, s, d in _along(attrs, result)]
        result = np.pad(result, [(0, 0), (0, 0), *((0, each) for each in more)], constant_values=beyond)
    return result


def _along(attrs: Pool, x: Array) -> list[tuple[int, int, int, int]]:
    return list(zip(x.shape[2:], attrs.window, attrs.strides, attrs.dilations, strict=True))


def _places(attrs: Pool, x: Array) -> tuple[slice, ...]:
    """The windows that count: in ceil mode not those that begin in the padding after the tensor."""
    starts = zip(x.shape[2:], attrs.pads, attrs.strides, strict=False)
    return tuple(
        slice(0, -(-(extent + before) // step) if attrs.ceil_mode else None) for extent, before, step in starts
    )


def _pooled(attrs: Pool, x: Array, fill: Any, beyond: Any) -> Array:
    attrs = replace(attrs, pads=pads_of(attrs, x.shape[2:], attrs.window), same="")
    seen = windows(_padded(attrs, x, fill, beyond), attrs.window, attrs.strides, attrs.dilations)
    return seen[(slice(None), slice(None), *_places(attrs, x))]


def _max_pool(attrs: Pool, x: Array) -> Array:
    least = -np.inf if x.dtype.kind == "f" else False if x.dtype.kind == "b" else np.iinfo(x.dtype).min
    axes = x.ndim - 2
    return np.asarray(_pooled(attrs, x, least, least).max(tuple(range(-axes, 0))))


def _average_pool(attrs: Pool, x: Array) -> Array:
    over = tuple(range(2 - x.ndim, 0))
    counted = np.ones((1, 1, *x.shape[2:]), x.dtype)
    counts = _pooled(attrs, counted, 1 if attrs.count_include_pad else 0, 0).sum(over)
    return np.asarray(_pooled(attrs, x, 0, 0).sum(over) / counts)


def _pool(
    image: Expr,
    window: Steps,
    stride: Steps | None,
    pad: Padding,
    dilation: Steps,
    *,
    ceil_mode: bool,
    count_include_pad: bool = False,
) -> Pool:
    axes = spatial_axes(image)
    steps = steps_of(window if stride is None else stride, axes)
    dilations = steps_of(dilation, axes)
    return Pool(steps_of(window, axes), steps, pads_given(pad, axes), dilations, ceil_mode, count_include_pad)


def _global(function: Callable[..., Any]) -> Meaning:
    return plain(lambda x: function(x, tuple(range(2, x.ndim)), keepdims=True))


def _over_space(reduction: str) -> Lowering:
    """The kernel of a reduction over all spatial axes."""

    def factory(x: KernelType, y: KernelType) -> PrimFunc:
        lowering = OPS[reduction].lowering
        assert lowering is not None
        return lowering.make()(x, y, axes=tuple(range(2, len(x.shape))), keepdims=True)

    return Lowering(factory)


def _lowered(kernel: str) -> Lowering:
    """A kernel in which padding is less than every element."""
    return Lowering(f"pool.{kernel}", said=("ceil_mode", "count_include_pad"))


class Pooling(CallBuilder):
    """Pooling over the spatial axes of `[batch, channels, *spatial]`.

    A single number stands for all spatial axes. `pad` is one number, one per axis, or two per axis: first the padding
    before each axis, then the padding after each. The stride defaults to the window.
    """

    @operator(_pool_type, _max_pool, _lowered("max_pool"), attrs=Pool)
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
        """The greatest element of each window."""
        (image,) = self._operands([x], self._here())
        attrs = _pool(image, window, stride, pad, dilation, ceil_mode=ceil_mode)
        return self.call("max_pool", image, attrs=attrs)

    @operator(_max_pool_indices_type, lowering=_lowered("max_pool_indices"), attrs=Pool)
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
        """As `max_pool`, and the index of each maximum in its channel, as i64: the first of equal ones."""
        (image,) = self._operands([x], self._here())
        attrs = _pool(image, window, stride, pad, dilation, ceil_mode=ceil_mode)
        call = self.call("max_pool_indices", image, attrs=attrs)
        return self.item(call, 0), self.item(call, 1)

    @operator(_average_pool_type, _average_pool, Lowering("pool.average_pool", said=("ceil_mode",)), attrs=Pool)
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
        """The mean of each window; with `count_include_pad` the padding counts as zeros."""
        (image,) = self._operands([x], self._here())
        attrs = _pool(image, window, stride, pad, dilation, ceil_mode=ceil_mode, count_include_pad=count_include_pad)
        return self.call("average_pool", image, attrs=attrs)

    @operator(_global_pool_type, _global(np.max), _over_space("reduce_max"), onnx=Spelling("GlobalMaxPool"))
    def global_max_pool(self, x: Operand) -> Call:
        """The greatest element of each channel; the spatial axes stay with extent 1."""
        return self.call("global_max_pool", x)

    @operator(_global_pool_type, _global(np.mean), _over_space("reduce_mean"), onnx=Spelling("GlobalAveragePool"))
    def global_average_pool(self, x: Operand) -> Call:
        """The mean of each channel; the spatial axes stay with extent 1."""
        return self.call("global_average_pool", x)
