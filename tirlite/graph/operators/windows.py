"""Sliding windows over the spatial axes of `[batch, channels, *spatial]`: their attributes, result extents and views.

`pads` lists the padding before each spatial axis, then the padding after each, as in ONNX.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from numpy.lib.stride_tricks import sliding_window_view

from tirlite.graph.expr import Expr
from tirlite.graph.extents import Extent, Shape, size_of
from tirlite.graph.op import Array, Site
from tirlite.graph.operators.operands import nonnegative
from tirlite.graph.types import TensorType
from tirlite.sizes import Size, ceildiv, maximum, minimum

SAME = ("", "upper", "lower")


class Sliding(Protocol):
    """The attributes of a sliding window; see `Conv`."""

    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def pads(self) -> tuple[Size, ...]: ...
    @property
    def dilations(self) -> tuple[int, ...]: ...
    @property
    def same(self) -> str: ...


def pads_of(attrs: Sliding, extents: Sequence[Size], window: Sequence[Size]) -> tuple[Size, ...]:
    """The padding before each spatial axis, then after each, of a tensor with these extents."""
    if not attrs.same:
        return attrs.pads
    totals = []
    for extent, size, stride, dilation in zip(extents, window, attrs.strides, attrs.dilations, strict=True):
        reach = (ceildiv(extent, stride) - 1) * stride + dilation * (size - 1) + 1
        totals.append(maximum(0, reach - extent))
    less, more = [total // 2 for total in totals], [total - total // 2 for total in totals]
    return (*less, *more) if attrs.same == "upper" else (*more, *less)


def windowed(site: Site, attrs: Sliding) -> TensorType:
    """The type of the first operand. Raises GraphError if the window's attributes are invalid for its axes."""
    x = site.tensor(0)
    axes = x.rank - 2
    if axes < 1:
        raise site.mismatch("operand 0 must have a batch axis, a channel axis and spatial ones")
    for name, given, wanted in (
        ("strides", attrs.strides, axes),
        ("dilations", attrs.dilations, axes),
        ("pads", attrs.pads, 2 * axes),
    ):
        if len(given) != wanted:
            raise site.bad_attribute(f"{name} has {len(given)} entries, and {axes} spatial axes take {wanted}")
    for name, steps in (("strides", attrs.strides), ("dilations", attrs.dilations)):
        if any(step < 1 for step in steps):
            raise site.bad_attribute(f"{name} must be positive")
    nonnegative(site, "pads", attrs.pads)
    if attrs.same not in SAME or (attrs.same and any(pad != 0 for pad in attrs.pads)):
        raise site.bad_attribute("same must be upper or lower, with pads of 0")
    return x


def slid(site: Site, extents: Shape, window: Shape, attrs: Sliding, *, ceil: bool = False) -> Shape:
    """The result extents: the number of window positions along each spatial axis."""
    if attrs.same:
        return tuple(ceildiv(extent, stride) for extent, stride in zip(extents, attrs.strides, strict=True))
    result = []
    axes = len(extents)
    for axis, (extent, size) in enumerate(zip(extents, window, strict=True)):
        stride, before = attrs.strides[axis], attrs.pads[axis]
        padded = extent + before + attrs.pads[axes + axis]
        reach = attrs.dilations[axis] * (size - 1) + 1
        room = padded - reach
        # In ceil mode the last window may extend beyond the padding, even if it is the only one.
        if not site.is_most(reach - stride + 1 if ceil else reach, padded):
            raise site.mismatch(f"the window does not fit into {padded} elements along spatial axis {axis}")
        places: Size = room // stride + 1
        if ceil:
            # Windows that would start in the padding after the tensor are dropped.
            places = minimum(ceildiv(room, stride) + 1, ceildiv(extent + before, stride))
        result.append(places)
    return tuple(result)


def pairs(pads: Sequence[Any]) -> list[tuple[int, int]]:
    """The pads as (before, after) pairs for all axes: none for batch and channels."""
    half = len(pads) // 2
    return [(0, 0), (0, 0), *zip(pads[:half], pads[half:], strict=True)]


def windows(x: Array, window: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> Array:
    """A view `[batch, channels, *places, *window]`: the elements of the window at each of its positions."""
    axes = len(window)
    reach = [dilation * (size - 1) + 1 for size, dilation in zip(window, dilations, strict=True)]
    seen = sliding_window_view(x, reach, tuple(range(2, 2 + axes)))
    return seen[(slice(None), slice(None), *every((*strides, *dilations)))]


def every(steps: Sequence[int]) -> list[slice]:
    return [slice(None, None, step) for step in steps]


Steps: TypeAlias = "int | Sequence[int]"


Padding: TypeAlias = "Extent | Sequence[Extent]"


def spatial_axes(image: Expr) -> int:
    """The number of spatial axes; if there are none, 1: type inference reports that."""
    return max(image.tensor.rank - 2, 1)


def steps_of(given: Steps, axes: int) -> tuple[int, ...]:
    return (given,) * axes if isinstance(given, int) else tuple(given)


def pads_given(given: Padding, axes: int) -> tuple[Size, ...]:
    if not isinstance(given, Sequence):
        return (size_of(given),) * (2 * axes)
    sizes = tuple(size_of(each) for each in given)
    return sizes * 2 if len(sizes) == axes else sizes
