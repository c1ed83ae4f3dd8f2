"""Importers of operators that look at images between their elements, or put elements of windows back."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tirlite.graph.attributes import Reshape
from tirlite.graph.expr import Expr
from tirlite.graph.extents import product
from tirlite.graph.onnx.computed import elements_of, extent_of, scalar
from tirlite.graph.onnx.importers.deformed import deformed_conv
from tirlite.graph.onnx.node import Node, Unsupported
from tirlite.graph.onnx.translation import Importer, Translation
from tirlite.graph.operators.convolution import ConvTranspose
from tirlite.ir import DType, i64
from tirlite.sizes import Size, maximum

# As they were called before version 20.
_MODES = {"bilinear": "linear", "bicubic": "cubic"}


def _grid_sample(t: Translation, node: Node) -> Expr:
    mode = node.text("mode", "linear")
    mode, padding = _MODES.get(mode, mode), node.text("padding_mode", "zeros")
    if node.first.tensor.rank != node.x(1).tensor.rank:
        raise Unsupported("its grid has another number of axes than its operand")
    return t.b.grid_sample(node.first, node.x(1), mode=mode, padding=padding, align_corners=node.flag("align_corners"))


def _affine_grid(t: Translation, node: Node) -> Expr:
    """Places in an image for each element of another one, the last axis first: sums of columns times coordinates."""
    theta, (batch, _, *wanted) = node.first, elements_of(t, node.x(1))
    extents = [extent_of(t, each) for each in wanted]
    count, axes = theta.shape[0], len(wanted)
    if theta.shape[1:] != (axes, axes + 1):
        raise Unsupported(f"its matrices are {theta.tensor}, and its size has {axes} spatial axes")
    columns = [t.b.slice(theta, [place], [place + 1], [2]) for place in range(axes + 1)]
    *factors, total = [t.b.reshape(each, (count, *(1,) * axes, axes)) for each in columns]
    for factor, place in zip(factors, reversed(range(axes)), strict=True):
        at = _coordinates(t, extents[place], theta.dtype, aligned=node.flag("align_corners"))
        total = t.b.add(total, t.b.multiply(factor, t.b.reshape(at, (extents[place], *(1,) * (axes - place)))))
    if isinstance(batch, Expr):
        told = t.b.extent(batch, count, "batch", least=count)
        return t.b.call("reshape", total, attrs=Reshape(total.shape, (told,)))
    return t.b.reshape(total, (batch, *extents, axes))


def _coordinates(t: Translation, extent: Size, dtype: DType, *, aligned: bool) -> Expr:
    """From -1 to 1: of the middles of so many elements, or with `aligned` of places from the first to the last."""
    count = scalar(t, maximum(extent - 1, 1) if aligned else extent)
    number = t.b.range(t.b.constant(np.int64(0)), t.b.constant(np.int64(1 if aligned else 2)), extent)
    along = t.b.cast(t.b.multiply(number, 2) if aligned else t.b.add(number, 1), dtype)
    return t.b.subtract(t.b.divide(along, t.b.cast(count, dtype)), 1.0)


def _roi_align(t: Translation, node: Node) -> Expr:
    default = "half_pixel" if node.version >= 16 else "output_half_pixel"
    bins = node.integer("output_height", 1), node.integer("output_width", 1)
    regions = t.b.cast(node.x(1), node.dtype) if node.x(1).dtype != node.dtype else node.x(1)
    return t.b.roi_align(
        node.first,
        regions,
        node.x(2),
        bins,
        scale=node.number("spatial_scale", 1.0),
        ratio=node.integer("sampling_ratio"),
        half_pixel=node.text("coordinate_transformation_mode", default) == "half_pixel",
        greatest=node.text("mode", "avg") == "max",
    )


def _max_unpool(t: Translation, node: Node) -> Expr:
    """Zeros, with the elements put where the indices point in all of them."""
    x, window = node.first, node.integers("kernel_shape")
    axes = node.rank - 2
    if window is None:
        raise Unsupported("its window is left out")
    strides, pads = node.integers("strides") or (1,) * axes, node.integers("pads") or (0,) * (2 * axes)
    usual = [(extent - 1) * strides[k] + window[k] - pads[k] - pads[axes + k] for k, extent in enumerate(x.shape[2:])]
    shape = (*x.shape[:2], *usual)
    zero = t.b.cast(t.b.constant(np.float32(0)), x.dtype)
    flat = t.b.broadcast_to(zero, (product(shape),))
    count = (product(x.shape),)
    indices = t.b.reshape(node.x(1), count)
    made = t.b.reshape(t.b.scatter_elements(flat, indices, t.b.reshape(x, count), 0), shape)
    if not node.has(2):
        return made
    wanted = node.sizes(2)
    # The elements stand in the corner of a larger result.
    after: list[Size] = [full - own for full, own in zip(wanted, shape, strict=True)]
    return t.b.pad(made, (0,) * node.rank, after)


def _col2im(t: Translation, node: Node) -> Expr:
    """Each tap of a window is a channel of its own: a transposed convolution puts them all in their places."""
    image, window = node.known(1), node.known(2)
    axes = len(image)
    strides, dilations = node.integers("strides") or (1,) * axes, node.integers("dilations") or (1,) * axes
    pads = node.integers("pads") or (0,) * (2 * axes)
    reach = [dilation * (size - 1) + 1 for size, dilation in zip(window, dilations, strict=True)]
    rooms = [image[k] + pads[k] + pads[axes + k] - reach[k] for k in range(axes)]
    blocks = [room // stride + 1 for room, stride in zip(rooms, strides, strict=True)]
    extra = tuple(room % stride for room, stride in zip(rooms, strides, strict=True))
    batch, rows, _ = node.first.shape
    taps = int(np.prod(window))
    channels = rows // taps
    if not isinstance(channels, int):
        raise Unsupported("its number of channels is a dim")
    eye = np.eye(taps, dtype=np.float32).reshape(taps, 1, *window)
    weight = t.b.cast(t.b.constant(np.tile(eye, (channels, 1, *(1,) * axes))), node.dtype)
    spread = t.b.reshape(node.first, (batch, rows, *blocks))
    return t.b.call("conv_transpose", spread, weight, attrs=ConvTranspose(strides, pads, dilations, channels, extra))


def _tensor_scatter(t: Translation, node: Node) -> Expr:
    """The updates along an axis from an index on that each batch has of its own."""
    x, updates, axis = node.x(0), node.x(1), node.axis("axis", -2)
    length = updates.shape[axis]
    zero, one = t.b.constant(np.int64(0)), t.b.constant(np.int64(1))
    steps = t.b.range(zero, one, length)
    if node.has(2):
        start = t.b.cast(node.x(2), i64)
        steps = t.b.add(t.b.reshape(start, (start.shape[0], 1)), t.b.reshape(steps, (1, length)))
    else:
        steps = t.b.reshape(steps, (1, length))
    if node.text("mode", "linear") == "circular":
        steps = t.b.floor_mod(steps, t.b.reshape(t.b.sizes([x.shape[axis]]), ()))
    apart = (steps.shape[0], *(length if place == axis else 1 for place in range(1, node.rank)))
    return t.b.scatter_elements(x, t.b.broadcast_to(t.b.reshape(steps, apart), updates.shape), updates, axis)


SAMPLING: Mapping[str, Importer] = {
    "AffineGrid": _affine_grid,
    "DeformConv": deformed_conv,
    "GridSample": _grid_sample,
    "RoiAlign": _roi_align,
    "MaxUnpool": _max_unpool,
    "Col2Im": _col2im,
    "TensorScatter": _tensor_scatter,
}
