"""Importers of operators that bring tensors to other extents.

What has no kernel of its own is a product with a matrix of weights, which resamples an axis in a given way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
import numpy.typing as npt

from tirlite.graph.expr import Constant, Expr
from tirlite.graph.extents import is_equal
from tirlite.graph.onnx.computed import sizes_of
from tirlite.graph.onnx.node import Node, Unsupported, axis_of
from tirlite.graph.onnx.translation import Importer, Translation
from tirlite.graph.operators.sampling import COORDINATES, ROUNDINGS
from tirlite.record import record
from tirlite.sizes import Size


def _upsample(t: Translation, node: Node) -> Expr:
    scales = node.numbers("scales") if node.version < 9 else tuple(map(float, node.array(1)))
    if scales is None:
        raise Unsupported("its scales are left out")
    mode = node.text("mode", "nearest")
    shape = [_scaled(extent, scale) for extent, scale in zip(node.first.shape, scales, strict=True)]
    return _resized(t, node.first, shape, scales, mode, "asymmetric", "floor", node)


def _scaled(extent: Size, scale: float) -> Size:
    """The extent times the scale, floored."""
    if isinstance(extent, int):
        return floor(extent * scale)
    ratio = Fraction(scale).limit_denominator(1 << 12)
    if abs(float(ratio) - scale) > 1e-6 * scale:
        raise Unsupported(f"an extent of {extent} times {scale}")
    return extent * ratio.numerator // ratio.denominator


def _resize(t: Translation, node: Node) -> Expr:
    x, rank = node.first, node.rank
    mode = node.text("mode", "nearest")
    if node.version < 11:
        scales = tuple(map(float, node.array(1)))
        shape = [_scaled(extent, scale) for extent, scale in zip(x.shape, scales, strict=True)]
        return _resized(t, x, shape, scales, mode, "asymmetric", "floor", node)
    axes = [axis_of(axis, rank) for axis in node.integers("axes") or range(rank)]
    extents: list[Size] = list(x.shape)
    ratios: list[float | None] = [1.0] * rank
    given = node.maybe(2)
    has_scales = given is not None and given.shape != (0,)
    if has_scales:
        for axis, scale in zip(axes, map(float, node.array(2)), strict=True):
            extents[axis], ratios[axis] = _scaled(x.shape[axis], scale), scale
    else:
        wanted = _aspect(node, [x.shape[axis] for axis in axes], sizes_of(t, node, 3, len(axes)))
        for axis, (extent, ratio) in zip(axes, wanted, strict=True):
            extents[axis], ratios[axis] = extent, ratio
    how = node.text("coordinate_transformation_mode", "half_pixel")
    rounding = node.text("nearest_mode", "round_prefer_floor")
    return _resized(t, x, extents, ratios, mode, how, rounding, node)


def _aspect(node: Node, before: Sequence[Size], wanted: Sequence[Size]) -> list[tuple[Size, float | None]]:
    """Extents and scales that keep the proportions, where that is asked for."""
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
    node: Node,
) -> Expr:
    antialias = node.flag("antialias") and mode != "nearest"
    # Cubic ones of known extents are products of matrices, which are faster.
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
            more = "antialias, " * antialias + "exclude_outside, " * node.flag("exclude_outside")
            raise Unsupported(
                f"mode {mode}, {more}coordinates {coordinates} along an extent of a dim: give it a number"
            )
        t.spent.constant(8 * old * new, node.span)
        weights = matrix(way, old, new, scales[axis], region, node.number("extrapolation_value"))
        if weights is None:
            raise Unsupported(f"mode {mode} with coordinates {coordinates}")
        x = _applied(t, x, t.b.constant(weights.astype(x.dtype.numpy)), axis)
    return x


def _applied(t: Translation, x: Expr, weights: Constant, axis: int) -> Expr:
    """The weighted sums along an axis."""
    order = [*(each for each in range(x.tensor.rank) if each != axis), axis]
    moved = t.b.matmul(t.b.transpose(x, order), t.b.transpose(weights))
    return t.b.transpose(moved, [order.index(each) for each in range(x.tensor.rank)])


RESIZING: Mapping[str, Importer] = {"Resize": _resize, "Upsample": _upsample}


Array = npt.NDArray[Any]


@record
class Resampling:
    """As ONNX's Resize spells it."""

    mode: str
    coordinates: str
    rounding: str
    cubic: float
    antialias: bool
    exclude_outside: bool


def matrix(
    way: Resampling,
    old: int,
    new: int,
    scale: float | None,
    region: tuple[float, float] | None,
    outside: float,
) -> Array | None:
    """`[new, old]` weights; None for ways that are not weighted sums, or are unknown."""
    ratio = new / old if scale is None else scale
    made = np.zeros((new, old))
    for index in range(new):
        place = _place(way.coordinates, index, old, new, ratio, region)
        if place is None:
            return None
        if region is not None and not 0 <= place <= old - 1:
            if outside:
                return None
            continue
        for at, weight in _weights(way, place, old, ratio):
            made[index, at] += weight
    return made


def _place(
    coordinates: str, index: int, old: int, new: int, ratio: float, region: tuple[float, float] | None
) -> float | None:
    if coordinates == "tf_crop_and_resize" and region is not None:
        start, end = region
        if new > 1:
            return start * (old - 1) + index * (end - start) * (old - 1) / (new - 1)
        return 0.5 * (start + end) * (old - 1)
    if coordinates == "asymmetric":
        return index / ratio
    if coordinates == "align_corners":
        return index * (old - 1) / (ratio * old - 1) if ratio * old != 1 else 0.0
    if coordinates == "half_pixel_symmetric":
        middle = old / 2
        return middle * (1 - new / (ratio * old)) + (index + 0.5) / ratio - 0.5
    if coordinates == "pytorch_half_pixel" and new <= 1:
        return 0.0
    if coordinates in ("half_pixel", "pytorch_half_pixel"):
        return (index + 0.5) / ratio - 0.5
    return None


def _weights(way: Resampling, place: float, old: int, ratio: float) -> list[tuple[int, float]]:
    """The elements that one of the result is made of, each with its weight; places outside count as the edge."""
    if way.mode == "nearest":
        return [(int(np.clip(_rounded(place, way.rounding), 0, old - 1)), 1.0)]
    stretch = max(1.0, 1 / ratio) if way.antialias else 1.0
    reach = (2 if way.mode == "cubic" else 1) * stretch
    first, last = int(np.floor(place - reach)) + 1, int(np.ceil(place + reach)) - 1
    if not way.antialias:
        low = int(np.floor(place))
        first, last = (low - 1, low + 2) if way.mode == "cubic" else (low, low + 1)
    kernel = _cubic if way.mode == "cubic" else _linear
    found = [(at, kernel((place - at) / stretch, way.cubic)) for at in range(first, last + 1)]
    if way.exclude_outside or way.antialias:
        found = [(at, weight if 0 <= at < old or not way.exclude_outside else 0.0) for at, weight in found]
        total = sum(weight for _, weight in found)
        found = [(at, weight / total) for at, weight in found]
    return [(min(max(at, 0), old - 1), weight) for at, weight in found]


def _rounded(place: float, rounding: str) -> float:
    if rounding == "round_prefer_floor":
        return float(np.ceil(place - 0.5))
    if rounding == "round_prefer_ceil":
        return float(np.floor(place + 0.5))
    return float(np.floor(place) if rounding == "floor" else np.ceil(place))


def _linear(distance: float, _: float) -> float:
    return max(0.0, 1 - abs(distance))


def _cubic(distance: float, a: float) -> float:
    """Keys' kernel of cubic convolution."""
    x = abs(distance)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0
