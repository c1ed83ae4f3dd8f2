"""Importers of operators that sample or resize images, invert windows, or convolve with deformed windows.

Resampling modes without a kernel become products with a matrix of interpolation weights along each axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import reduce
from math import ceil, floor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tirlite.graph.expr import Expr
from tirlite.graph.extents import is_equal, product
from tirlite.graph.onnx.computed import elements_of, extent_of, numbers, scalar, sizes_of
from tirlite.graph.onnx.importers.convolution import window_of
from tirlite.graph.onnx.node import OnnxNode, Unsupported, axis_of
from tirlite.graph.onnx.translation import Importer, Translation
from tirlite.graph.op import Reshape
from tirlite.graph.operators.convolution import ConvTranspose
from tirlite.graph.operators.sampling import COORDINATES, ROUNDINGS, Resampling, neighbours, places
from tirlite.ir import DType, f64, i64
from tirlite.sizes import Size, as_size, ceildiv, maximum


class _Side(NamedTuple):
    """One spatial axis of a convolution: extents of window, result and operand, and the window's attributes."""

    window: int
    result: Size
    extent: Size
    stride: int
    dilation: int
    pad: int


def deformed_conv(t: Translation, node: OnnxNode) -> Expr:
    """Samples the operand bilinearly at the window's places plus their offsets, and multiplies with the weights."""
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
    """The offsets along one axis: [batch, offset groups, window rows, window columns, result rows, result columns]."""
    one = t.b.gather(apart, t.b.constant(np.int64(axis)), 4)
    return t.b.cast(one, apart.dtype)


def _straight(t: Translation, x: Expr, side: _Side, axis: int) -> Expr:
    """The places of the windows without offsets, shaped to broadcast against these."""
    inside = t.b.multiply(numbers(t, side.window), side.dilation)
    start = t.b.subtract(t.b.multiply(numbers(t, side.result), side.stride), side.pad)
    window = (side.window, 1, 1, 1) if axis == 0 else (side.window, 1, 1)
    result = (side.result, 1) if axis == 0 else (side.result,)
    return t.b.cast(t.b.add(t.b.reshape(inside, window), t.b.reshape(start, result)), x.dtype)


def _between(t: Translation, x: Expr, at: Sequence[Expr], sides: Sequence[_Side], bends: int) -> Expr:
    """The bilinearly interpolated elements: [batch, offset groups, channels of a group, places]."""
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


# The names before opset 20.
_MODES = {"bilinear": "linear", "bicubic": "cubic"}


def _grid_sample(t: Translation, node: OnnxNode) -> Expr:
    mode = node.text("mode", "linear")
    mode, padding = _MODES.get(mode, mode), node.text("padding_mode", "zeros")
    if node.first.tensor.rank != node.x(1).tensor.rank:
        raise Unsupported("its grid has another number of axes than its operand")
    return t.b.grid_sample(node.first, node.x(1), mode=mode, padding=padding, align_corners=node.flag("align_corners"))


def _affine_grid(t: Translation, node: OnnxNode) -> Expr:
    """The sampling coordinates of each result element, last axis first: products of `theta` and the coordinates."""
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
    """Coordinates from -1 to 1: of the elements' centres, or with `aligned` from the first to the last element."""
    count = scalar(t, maximum(extent - 1, 1) if aligned else extent)
    number = t.b.range(t.b.constant(np.int64(0)), t.b.constant(np.int64(1 if aligned else 2)), extent)
    along = t.b.cast(t.b.multiply(number, 2) if aligned else t.b.add(number, 1), dtype)
    return t.b.subtract(t.b.divide(along, t.b.cast(count, dtype)), 1.0)


def _roi_align(t: Translation, node: OnnxNode) -> Expr:
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


def _max_unpool(t: Translation, node: OnnxNode) -> Expr:
    """Scatters the elements into zeros, by indices into the whole result."""
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
    # A larger result is padded at the end.
    after: list[Size] = [full - own for full, own in zip(wanted, shape, strict=True)]
    return t.b.pad(made, (0,) * node.rank, after)


def _col2im(t: Translation, node: OnnxNode) -> Expr:
    """A transposed convolution with one input channel per tap of the window, whose weight is 1 at that tap."""
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


def _tensor_scatter(t: Translation, node: OnnxNode) -> Expr:
    """Writes the updates along an axis, from an index on that is given per batch item."""
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


def _simple(scale: float) -> Fraction:
    """A simple fraction equal to the scale in f32: with 0.7 as models store it, 10 elements become 7 and not 6."""
    exact = Fraction(float(scale))
    near = exact.limit_denominator(1 << 12)
    return near if np.float32(near) == np.float32(scale) else exact


def _scaled(extent: Size, scale: Fraction) -> Size:
    """The extent times the scale, rounded down."""
    if not isinstance(extent, int) and scale.denominator > 1 << 12:
        raise Unsupported(f"an extent of {extent} times {float(scale)}")
    return extent * scale.numerator // scale.denominator


def _resize(t: Translation, node: OnnxNode) -> Expr:
    x, rank = node.first, node.rank
    mode = node.text("mode", "nearest")
    if node.version < 11 or node.op == "Upsample":
        scales = tuple(map(_simple, node.numbers("scales") or node.array(1)))
        shape = [_scaled(extent, scale) for extent, scale in zip(x.shape, scales, strict=True)]
        return _resized(t, x, shape, [*map(float, scales)], mode, "asymmetric", "floor", node)
    axes = [axis_of(axis, rank) for axis in node.integers("axes") or range(rank)]
    extents: list[Size] = list(x.shape)
    ratios: list[float | None] = [1.0] * rank
    given = node.maybe(2)
    has_scales = given is not None and given.shape != (0,)
    if has_scales and node.has(3):
        raise Unsupported("it has scales and sizes, and may have one")
    if has_scales:
        for axis, scale in zip(axes, map(_simple, node.array(2)), strict=True):
            extents[axis], ratios[axis] = _scaled(x.shape[axis], scale), float(scale)
    else:
        wanted = _aspect(node, [x.shape[axis] for axis in axes], sizes_of(t, node, 3, len(axes)))
        for axis, (extent, ratio) in zip(axes, wanted, strict=True):
            extents[axis], ratios[axis] = extent, ratio
    how = node.text("coordinate_transformation_mode", "half_pixel")
    rounding = node.text("nearest_mode", "round_prefer_floor")
    return _resized(t, x, extents, ratios, mode, how, rounding, node)


def _aspect(node: OnnxNode, before: Sequence[Size], wanted: Sequence[Size]) -> list[tuple[Size, float | None]]:
    """The extents and scales of a resize, adjusted if `keep_aspect_ratio_policy` says so."""
    policy = node.text("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return [(each, None) for each in wanted]
    pairs = list(zip(before, wanted, strict=True))
    if not all(isinstance(a, int) and isinstance(b, int) for a, b in pairs):
        raise Unsupported("proportions of extents of dims are to be kept")
    ratios = [int(str(b)) / int(str(a)) for a, b in pairs]
    ratio = min(ratios) if policy == "not_larger" else max(ratios)
    return [(floor(ratio * int(str(a)) + 0.5), ratio) for a, _ in pairs]


def _resized(
    t: Translation,
    x: Expr,
    shape: Sequence[Size],
    scales: Sequence[float | None],
    mode: str,
    coordinates: str,
    rounding: str,
    node: OnnxNode,
) -> Expr:
    antialias = node.flag("antialias") and mode != "nearest"
    # Cubic resizes of known extents become matrix products, which are faster.
    pairs = zip(x.shape, shape, strict=True)
    varies = any(not isinstance(a, int) or not isinstance(b, int) for a, b in pairs if not is_equal(a, b))
    modes = ("nearest", "linear", "cubic") if varies else ("nearest", "linear")
    cubic = node.number("cubic_coeff_a", -0.75)
    is_plain = mode in modes and not antialias and not node.flag("exclude_outside")
    if is_plain and coordinates in COORDINATES and rounding in ROUNDINGS:
        kinds = {"mode": mode, "coordinates": coordinates, "rounding": rounding}
        return t.b.resize(x, shape, scales=scales, cubic=cubic, **kinds)
    if coordinates == "tf_crop_and_resize" and not node.has(1):
        raise Unsupported("its region is left out")
    roi = [float(each) for each in node.array(1)] if coordinates == "tf_crop_and_resize" else []
    way = Resampling(mode, coordinates, rounding, cubic, antialias, node.flag("exclude_outside"))
    axes = [axis_of(axis, node.rank) for axis in node.integers("axes") or range(node.rank)]
    for axis in range(node.rank):
        old, new = x.shape[axis], shape[axis]
        region = None
        if roi and axis in axes:
            place = axes.index(axis)
            region = (roi[place], roi[place + len(axes)])
        if (old is new or old == new) and scales[axis] in (None, 1.0) and region in (None, (0.0, 1.0)):
            continue
        if not isinstance(old, int) or not isinstance(new, int):
            x = _applied(t, *_by_size(t, way, x, axis, new, scales[axis]), axis)
            continue
        t.spent.constant(8 * old * new, node.span)
        weights = matrix(way, old, new, scales[axis], region, node.number("extrapolation_value"))
        if weights is None:
            raise Unsupported(f"mode {mode} with coordinates {coordinates}")
        if mode == "nearest" and weights.any(axis=1).all():
            # A product would multiply infinities and nans of other elements by 0.
            x = t.b.gather(x, t.b.constant(weights.argmax(axis=1)), axis)
        else:
            x = _applied(t, x, t.b.constant(weights.astype(x.dtype.numpy)), axis)
    return x


def _by_size(t: Translation, way: Resampling, x: Expr, axis: int, new: Size, scale: float | None) -> tuple[Expr, Expr]:
    """The operand and the `[new, old]` weights for resampling an axis of symbolic extents; a run computes the weights.

    Without `exclude_outside`, the axis is first extended by the filter's reach, repeating the outermost elements.
    """
    b, old = t.b, x.shape[axis]
    if way.mode not in ("linear", "cubic") or way.coordinates not in (*COORDINATES, "half_pixel_symmetric"):
        raise Unsupported(f"mode {way.mode}, coordinates {way.coordinates} along an extent of a dim: give it a number")
    before, after = (b.cast(b.reshape(b.sizes([size]), ()), f64) for size in (old, new))
    ratio: Expr = b.divide(after, before) if scale is None else b.constant(np.float64(scale))
    reach, most, stretch, ahead = 2 if way.mode == "cubic" else 1, as_size(1), b.constant(np.float64(1)), as_size(0)
    if way.antialias:
        stretch = b.maximum(b.divide(1.0, ratio), 1.0)  # type: ignore[assignment]
        most = ceildiv(old, maximum(new, 1)) if scale is None else as_size(ceil(1 / scale))
    if not way.exclude_outside:
        ahead = reach * maximum(most, 1)
        near = b.range(b.reshape(b.sizes([-ahead]), ()), np.int64(1), old + 2 * ahead)
        last = b.reshape(b.sizes([old - 1]), ())
        x = b.gather(x, b.maximum(b.minimum(near, last), 0), axis)
    place = b.unsqueeze(_place(t, way.coordinates, _steps(t, 0, new), (before, after, ratio)), 1)
    distance = b.divide(b.abs(b.subtract(place, _steps(t, -ahead, old + 2 * ahead))), stretch)
    weights: Expr = b.maximum(b.subtract(1.0, distance), 0.0) if way.mode == "linear" else _keys(t, distance, way.cubic)
    if way.antialias or way.exclude_outside:
        weights = b.divide(weights, b.reduce_sum(weights, 1, keepdims=True))
    return x, b.cast(weights, x.dtype)


def _steps(t: Translation, first: Size, count: Size) -> Expr:
    return t.b.cast(t.b.range(t.b.reshape(t.b.sizes([first]), ()), np.int64(1), count), f64)


def _place(t: Translation, coordinates: str, at: Expr, extents: tuple[Expr, Expr, Expr]) -> Expr:
    """As `places`, for extents as expressions: before, after, and their ratio."""
    b, (before, after, ratio) = t.b, extents
    if coordinates == "asymmetric":
        return b.divide(at, ratio)
    if coordinates == "align_corners":
        length = b.subtract(b.multiply(ratio, before), 1.0)
        step = b.divide(b.subtract(before, 1.0), b.where(b.equal(length, 0.0), 1.0, length))
        return b.multiply(at, b.where(b.equal(length, 0.0), 0.0, step))
    place = b.subtract(b.divide(b.add(at, 0.5), ratio), 0.5)
    if coordinates == "pytorch_half_pixel":
        return b.where(b.less_equal(after, 1.0), 0.0, place)
    if coordinates == "half_pixel_symmetric":
        cut = b.subtract(1.0, b.divide(after, b.multiply(ratio, before)))
        return b.add(place, b.multiply(cut, b.divide(before, 2.0)))
    return place


def _keys(t: Translation, x: Expr, a: float) -> Expr:
    """Keys' kernel of cubic convolution."""
    b = t.b

    def polynomial(*factors: float) -> Expr:
        total: Expr = b.constant(np.float64(factors[0]))
        for each in factors[1:]:
            total = b.add(b.multiply(total, x), each)
        return total

    near, far = polynomial(a + 2, -(a + 3), 0.0, 1.0), polynomial(a, -5 * a, 8 * a, -4 * a)
    return b.where(b.less_equal(x, 1.0), near, b.where(b.less(x, 2.0), far, 0.0))


def _applied(t: Translation, x: Expr, weights: Expr, axis: int) -> Expr:
    """The product with the weights along an axis."""
    order = [*(each for each in range(x.tensor.rank) if each != axis), axis]
    moved = t.b.matmul(t.b.transpose(x, order), t.b.transpose(weights))
    return t.b.transpose(moved, [order.index(each) for each in range(x.tensor.rank)])


def matrix(
    way: Resampling,
    old: int,
    new: int,
    scale: float | None,
    region: tuple[float, float] | None,
    outside: float,
) -> npt.NDArray[np.float64] | None:
    """`[new, old]` interpolation weights; None if the mode is unknown or not a weighted sum."""
    ratio = new / old if scale is None else scale
    place = places(way, old, new, ratio, region)
    if place is None:
        return None
    is_inside = np.full(new, True) if region is None else (place >= 0) & (place <= old - 1)
    if outside and not is_inside.all():
        return None
    made = np.zeros((new, old))
    for at, weight in neighbours(way, place, old, ratio):
        np.add.at(made, (np.arange(new), at), np.where(is_inside, weight, 0.0))
    return made


RESIZING: Mapping[str, Importer] = {"Resize": _resize, "Upsample": _resize}
