"""Importers of operators that look at images between their elements, or put elements of windows back.

Of convolutions whose windows are bent too: each of their places is moved by an offset of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from tirlite.graph.expr import Expr
from tirlite.graph.extents import product
from tirlite.graph.onnx.computed import elements_of, extent_of, numbers, scalar
from tirlite.graph.onnx.importers.convolution import window_of
from tirlite.graph.onnx.node import Node, Unsupported
from tirlite.graph.onnx.translation import Importer, Translation
from tirlite.graph.op import Reshape
from tirlite.graph.operators.convolution import ConvTranspose
from tirlite.ir import DType, i64
from tirlite.sizes import Size, maximum


class _Side(NamedTuple):
    """One spatial axis: places of the window, of the result and of the operand; and how they are laid."""

    window: int
    result: Size
    extent: Size
    stride: int
    dilation: int
    pad: int


def deformed_conv(t: Translation, node: Node) -> Expr:
    """The operand at the bent places of each window, between four elements, and the product with the weights."""
    x, weights, offsets = node.x(0), node.x(1), node.x(2)
    if node.rank != 4:
        raise Unsupported(f"its operand has {node.rank} axes, and must have 4")
    batch, channels, *_ = x.shape
    outputs, _, *windows = weights.shape
    if not all(isinstance(each, int) for each in (channels, outputs, *windows)):
        raise Unsupported("its weights depend on dims")
    groups, bends = node.integer("group", 1), node.integer("offset_group", 1)
    pads = node.integers("pads") or (0, 0, 0, 0)
    strides, dilations = (node.integers(name) or (1, 1) for name in ("strides", "dilations"))
    sides = [
        _Side(windows[k], offsets.shape[2 + k], x.shape[2 + k], strides[k], dilations[k], pads[k]) for k in range(2)
    ]
    count = windows[0] * windows[1]
    places = sides[0].result * sides[1].result
    apart = t.b.reshape(offsets, (batch, bends, *windows, 2, sides[0].result, sides[1].result))
    rows, columns = (t.b.add(_moved(t, apart, k), _straight(t, x, side, k)) for k, side in enumerate(sides))
    flat = (batch, bends, count * places)
    at = [t.b.reshape(each, flat) for each in (rows, columns)]
    values = _between(t, x, at, sides, bends)
    mask = node.maybe(4)
    if mask is not None:
        values = t.b.multiply(values, t.b.reshape(mask, (batch, bends, 1, count * places)))
    taken = t.b.reshape(values, (batch, groups, channels // groups * count, places))
    matrix = t.b.reshape(weights, (groups, outputs // groups, channels // groups * count))
    made = t.b.reshape(t.b.matmul(matrix, taken), (batch, outputs, sides[0].result, sides[1].result))
    bias = node.maybe(3)
    return made if bias is None else t.b.add(made, t.b.reshape(bias, (outputs, 1, 1)))


def _moved(t: Translation, apart: Expr, axis: int) -> Expr:
    """The offsets along one axis: [batch, bends, rows of the window, columns, rows of the result, columns]."""
    one = t.b.gather(apart, t.b.constant(np.int64(axis)), 4)
    return t.b.cast(one, apart.dtype)


def _straight(t: Translation, x: Expr, side: _Side, axis: int) -> Expr:
    """Where the places of the windows lie without offsets, in the shape of these."""
    inside = t.b.multiply(numbers(t, side.window), side.dilation)
    start = t.b.subtract(t.b.multiply(numbers(t, side.result), side.stride), side.pad)
    window = (side.window, 1, 1, 1) if axis == 0 else (side.window, 1, 1)
    result = (side.result, 1) if axis == 0 else (side.result,)
    return t.b.cast(t.b.add(t.b.reshape(inside, window), t.b.reshape(start, result)), x.dtype)


def _between(t: Translation, x: Expr, at: Sequence[Expr], sides: Sequence[_Side], bends: int) -> Expr:
    """The elements at places between four of them: [batch, bends, channels of each, places]."""
    batch, channels, *_ = x.shape
    extents = [scalar(t, side.extent) for side in sides]
    each = channels // bends
    planes = t.b.reshape(x, (batch, bends, each, sides[0].extent * sides[1].extent))
    low = [t.b.floor(place) for place in at]
    corners = []
    for corner in ((0, 0), (0, 1), (1, 0), (1, 1)):
        indices, shares, inside = [], [], []
        for axis, step in enumerate(corner):
            place = t.b.add(low[axis], float(step))
            last = t.b.cast(t.b.subtract(extents[axis], 1), x.dtype)
            here = t.b.logical_and(t.b.greater_equal(place, 0.0), t.b.less_equal(place, last))
            shares.append(t.b.subtract(1.0, t.b.abs(t.b.subtract(at[axis], place))))
            inside.append(here)
            indices.append(t.b.cast(t.b.where(here, place, 0.0), i64))
        index = t.b.unsqueeze(t.b.add(t.b.multiply(indices[0], extents[1]), indices[1]), 2)
        found = t.b.gather_elements(planes, t.b.broadcast_to(index, (batch, bends, each, index.shape[3])), 3)
        is_inside = t.b.logical_and(*inside)
        weight = t.b.unsqueeze(t.b.where(is_inside, t.b.multiply(*shares), 0.0), 2)
        corners.append(t.b.multiply(t.b.where(t.b.unsqueeze(is_inside, 2), found, 0.0), weight))
    return reduce(t.b.add, corners)


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
    x, window, axes = node.first, window_of(node), node.rank - 2
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
    steps = numbers(t, length)
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
