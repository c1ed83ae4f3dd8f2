"""Importers of operators that bring tensors to other extents.

What has no kernel of its own is a product with a matrix of weights, which resamples an axis in a given way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil, floor

import numpy as np
import numpy.typing as npt

from tirlite.graph.expr import Expr
from tirlite.graph.extents import is_equal
from tirlite.graph.onnx.computed import sizes_of
from tirlite.graph.onnx.node import Node, Unsupported, axis_of
from tirlite.graph.onnx.translation import Importer, Translation
from tirlite.graph.operators.sampling import COORDINATES, ROUNDINGS, Resampling, neighbours, places
from tirlite.ir import f64
from tirlite.sizes import Size, as_size, ceildiv, maximum


def _upsample(t: Translation, node: Node) -> Expr:
    given = node.numbers("scales") if node.version < 9 else node.array(1)
    if given is None:
        raise Unsupported("its scales are left out")
    scales = tuple(map(_simple, given))
    mode = node.text("mode", "nearest")
    shape = [_scaled(extent, scale) for extent, scale in zip(node.first.shape, scales, strict=True)]
    return _resized(t, node.first, shape, [*map(float, scales)], mode, "asymmetric", "floor", node)


def _simple(scale: float) -> Fraction:
    """The simplest fraction that is this number in f32: of 0.7 as models store it, 10 elements become 7, and not 6."""
    exact = Fraction(float(scale))
    near = exact.limit_denominator(1 << 12)
    return near if np.float32(near) == np.float32(scale) else exact


def _scaled(extent: Size, scale: Fraction) -> Size:
    """The extent times the scale, floored."""
    if not isinstance(extent, int) and scale.denominator > 1 << 12:
        raise Unsupported(f"an extent of {extent} times {float(scale)}")
    return extent * scale.numerator // scale.denominator


def _resize(t: Translation, node: Node) -> Expr:
    x, rank = node.first, node.rank
    mode = node.text("mode", "nearest")
    if node.version < 11:
        scales = tuple(map(_simple, node.array(1)))
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
            x = _applied(t, *_by_size(t, way, x, axis, new, scales[axis]), axis)
            continue
        t.spent.constant(8 * old * new, node.span)
        weights = matrix(way, old, new, scales[axis], region, node.number("extrapolation_value"))
        if weights is None:
            raise Unsupported(f"mode {mode} with coordinates {coordinates}")
        if mode == "nearest" and weights.any(axis=1).all():
            # A product would take an infinity or a nan from beside what is taken.
            x = t.b.gather(x, t.b.constant(weights.argmax(axis=1)), axis)
        else:
            x = _applied(t, x, t.b.constant(weights.astype(x.dtype.numpy)), axis)
    return x


def _by_size(t: Translation, way: Resampling, x: Expr, axis: int, new: Size, scale: float | None) -> tuple[Expr, Expr]:
    """What an axis is resampled from, and `[new, from]` weights, which a run computes: its extents are dims.

    Without `exclude_outside` it is longer at both ends by what the kernel reaches: outermost elements stand there, too.
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
    """As `places`, of extents that a run finds: before, after, and their ratio."""
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
    """The weighted sums along an axis."""
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
    """`[new, old]` weights; None for ways that are not weighted sums, or are unknown."""
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


RESIZING: Mapping[str, Importer] = {"Resize": _resize, "Upsample": _upsample}
