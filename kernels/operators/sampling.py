"""Sampling between elements: grid sampling, ROI align and resizing, with coordinates as in ONNX.

A resize takes the nearest element, or interpolates between neighbours along each axis. If the last axis and another one
are resized, the other axes are interpolated first, for a whole line, which vectorizes; the indices and weights along
the last axis are computed once for all lines. A nearest resize by an integer factor repeats elements.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TypeAlias

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir.builder import Builder
from tirlite.ir.dtype import DType, TensorType, f32, f64, i64
from tirlite.ir.expr import Buffer, Call, Cast, Expr, Max, Min, as_expr
from tirlite.ir.func import PrimFunc
from tirlite.ir.op import Op
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.shapes import Extent, extents, nest, product

REACH = {"nearest": 1, "linear": 2, "cubic": 4}  # elements per axis that a result element is interpolated from
KEYS = -0.75  # the coefficient of cubic convolution
# The indices and weights of several grid places are computed before all channels are sampled there: `_FOUND` of them
# fit in a cache. Workers get at least `_FEWEST` places, in about `_PIECES` pieces.
_FOUND, _FEWEST, _PIECES = 2048, 64, 4


@factory
def grid_sample(
    X: TensorType,
    G: TensorType,
    Y: TensorType,
    *,
    mode: str = "linear",
    padding: str = "zeros",
    align_corners: bool = False,
) -> PrimFunc:
    """y[n, c, place] = x[n, c] at g[n, place], with coordinates from -1 to 1 along each axis, the last axis first.

    Outside of x there are "zeros", its "border", or its "reflection". With `align_corners`, -1 and 1 are the centres of
    the outermost elements, else their edges.
    """
    (batches, channels, *inputs), places = extents(X), product(extents(Y)[2:])
    axes, reach, kind = len(inputs), REACH[mode], computed_in(X.dtype)
    taps, locate = reach**axes, _locator(_finder(kind, inputs, mode, padding, align_corners), kind, inputs, reach)
    together = _together(places, taps)
    blocks = (places + together - 1) // together

    @tl.kernel
    def grid_sample(x: X, grid: G, y: tl.out[Y]):
        images = tl.view(x, x.dtype[batches, channels, tl.static(product(inputs))])
        points = tl.view(grid, grid.dtype[batches, places, axes])
        results = tl.view(y, y.dtype[batches, channels, places])
        for piece in tl.parallel(batches * blocks):
            n = piece // blocks
            first = piece % blocks * together
            count = min(together, places - first)
            factors = tl.alloc(kind[taps, together])
            ats = tl.alloc(tl.i64[taps, together])
            for q in range(count):
                locate(factors, ats, q, points, n, first + q)
            for c in range(channels):
                for q in range(count):
                    total = kind(0)
                    for tap in range(taps):
                        # Always in bounds; the clamp proves it, as nothing is known about an array's contents.
                        index = min(max(ats[tap, q], 0), tl.static(product(inputs)) - 1)
                        total += factors[tap, q] * kind(images[n, c, index]) if factors[tap, q] != 0 else 0
                    results[n, c, first + q] = y.dtype(total)

    return grid_sample.ir


def _together(places: Extent, taps: int) -> int:
    """The number of places whose indices and weights are computed together."""
    most = max(1, _FOUND // taps)
    return min(most, max(_FEWEST, -(-places // _PIECES))) if isinstance(places, int) else most


def _locator(find: Inline, kind: DType, inputs: list[Extent], reach: int) -> Inline:
    """`locate(factors, ats, q, points, n, place)`: the weights and indices of the elements that a place is made of."""
    axes, taps = len(inputs), reach ** len(inputs)

    @tl.inline
    def locate(factors, ats, q, points, n, place):
        weights = tl.alloc(kind[axes, reach], scope="local")
        near = tl.alloc(tl.i64[axes, reach], scope="local")
        for k in tl.static(range(axes)):
            find(weights, near, k, kind(points[n, place, tl.static(axes - 1 - k)]))
        for tap in range(taps):
            factor = kind(1)
            at = tl.i64(0)
            for k in tl.static(range(axes)):
                digit = tap // tl.static(reach ** (axes - 1 - k)) % reach
                inside = near[k, digit] >= 0
                factor *= weights[k, digit] if inside else 0
                at = at * tl.static(inputs[k]) + (near[k, digit] if inside else 0)
            factors[tap, q] = factor
            ats[tap, q] = at

    return locate


def _finder(kind: DType, inputs: list[Extent], mode: str, padding: str, align_corners: bool) -> Inline:
    """`find(weights, near, k, x)`: the indices along axis k near x, -1 for padding zeros, and their weights."""
    reach = REACH[mode]

    @tl.inline
    def mirrored(x, low, high):
        span = high - low
        away = abs(x - low)
        turn = away - tl.floor(away / (2 * span)) * (2 * span)
        return low + (turn if turn <= span else 2 * span - turn) if span > 0 else low

    @tl.inline
    def find(weights, near, k, x):
        last = kind(tl.static(inputs[k]) - 1)
        low = kind(0) if tl.static(align_corners) else kind(-0.5)
        high = last - low
        at = (x + 1) / 2 * last if tl.static(align_corners) else ((x + 1) * (last + 1) - 1) / 2
        first = tl.round(at) if tl.static(mode == "nearest") else tl.floor(at)
        share = at - first
        _weigh(weights, k, share, kind)
        for p in range(reach):
            index = first + kind(p - tl.static((reach - 1) // 2))
            if tl.static(padding == "border"):
                index = min(max(index, 0), last)
            if tl.static(padding == "reflection"):
                index = mirrored(index, low, high)
            near[k, p] = tl.i64(index) if index >= 0 and index <= last else tl.i64(-1)

    @tl.inline
    def _weigh(weights, k, share, kind):
        if tl.static(mode == "nearest"):
            weights[k, 0] = 1
        elif tl.static(mode == "linear"):
            weights[k, 0] = 1 - share
            weights[k, 1] = share
        else:
            a = kind(KEYS)
            far = share + 1
            rest = 1 - share
            weights[k, 0] = ((a * far - 5 * a) * far + 8 * a) * far - 4 * a
            weights[k, 1] = ((a + 2) * share - (a + 3)) * share * share + 1
            weights[k, 2] = ((a + 2) * rest - (a + 3)) * rest * rest + 1
            weights[k, 3] = 1 - weights[k, 0] - weights[k, 1] - weights[k, 2]

    return find


@factory
def roi_align(
    X: TensorType,
    R: TensorType,
    B: TensorType,
    Y: TensorType,
    *,
    scale: float = 1.0,
    ratio: int = 0,
    half_pixel: bool = True,
    greatest: bool = False,
) -> PrimFunc:
    """y[r, c] = x[b[r], c] in the bins of region r, (left, top, right, bottom) in units of 1 / scale.

    A bin is the mean, or with `greatest` the maximum, of `ratio` samples along each axis, or (0) one per element.
    """
    (_, channels, height, width), (regions, _, rows, columns) = extents(X), extents(Y)
    kind = computed_in(X.dtype)
    sample = _sampler(kind, height, width, greatest)

    @tl.kernel
    def roi_align(x: X, rois: R, batch: B, y: tl.out[Y]):
        for piece in tl.parallel(regions * channels):
            r = piece // channels
            c = piece % channels
            image = tl.i64(batch[r])
            assert 0 <= image < x.shape[0], f"image {image} does not exist among {x.shape[0]}"
            shift = kind(0.5 if half_pixel else 0.0)
            left = kind(rois[r, 0]) * scale - shift
            top = kind(rois[r, 1]) * scale - shift
            wide = kind(rois[r, 2]) * scale - shift - left
            tall = kind(rois[r, 3]) * scale - shift - top
            wide = wide if tl.static(half_pixel) else max(wide, 1)
            tall = tall if tl.static(half_pixel) else max(tall, 1)
            bin_v = tall / kind(rows)
            bin_h = wide / kind(columns)
            count_v = tl.i64(ratio) if tl.static(ratio > 0) else tl.i64(tl.ceil(bin_v))
            count_h = tl.i64(ratio) if tl.static(ratio > 0) else tl.i64(tl.ceil(bin_h))
            for i in range(rows):
                for j in range(columns):
                    total = kind(0)
                    for v in range(count_v):
                        for h in range(count_h):
                            at_y = top + kind(i) * bin_v + (kind(v) + 0.5) * bin_v / kind(count_v)
                            at_x = left + kind(j) * bin_h + (kind(h) + 0.5) * bin_h / kind(count_h)
                            value = sample(x, image, c, at_y, at_x)
                            if tl.static(greatest):
                                total = value if v + h == 0 else max(total, value)
                            else:
                                total += value
                    if tl.static(greatest):
                        y[r, c, i, j] = y.dtype(total)
                    else:
                        y[r, c, i, j] = y.dtype(total / kind(max(count_v * count_h, 1)))

    return roi_align.ir


def _sampler(kind: DType, height: Extent, width: Extent, greatest: bool) -> Inline:
    """`sample(x, image, c, at_y, at_x)`: bilinear interpolation, or the greatest weighted element; 0 far outside."""

    @tl.inline
    def part(x, image, c, v, h, wv, wh):
        return wv * wh * kind(x[image, c, v, h])

    @tl.inline
    def sample(x, image, c, at_y, at_x):
        outside = at_y < -1 or at_y > height or at_x < -1 or at_x > width
        v = min(max(at_y, 0), kind(height - 1))
        h = min(max(at_x, 0), kind(width - 1))
        low_v = min(max(tl.i64(v), 0), height - 1)
        low_h = min(max(tl.i64(h), 0), width - 1)
        high_v = min(low_v + 1, height - 1)
        high_h = min(low_h + 1, width - 1)
        dv = v - kind(low_v)
        dh = h - kind(low_h)
        a = part(x, image, c, low_v, low_h, 1 - dv, 1 - dh)
        b = part(x, image, c, low_v, high_h, 1 - dv, dh)
        d = part(x, image, c, high_v, low_h, dv, 1 - dh)
        e = part(x, image, c, high_v, high_h, dv, dh)
        value = max(max(a, b), max(d, e)) if tl.static(greatest) else a + b + d + e
        return kind(0) if outside else value

    return sample


# For an index of the result along an axis: the operand's indices, with weights if there are several.
_Ways: TypeAlias = "list[tuple[Expr, Expr | None]]"
# Lines of the operand that are more than this many times longer than the result's would mostly be interpolated in vain.
_LONG = 4


@factory
def resize(
    X: TensorType,
    Y: TensorType,
    *,
    scales: tuple[float | None, ...],
    mode: str = "nearest",
    coordinates: str = "half_pixel",
    rounding: str = "round_prefer_floor",
    cubic: float = -0.75,
) -> PrimFunc:
    """x at the extents of y; `mode` is "nearest", with a `rounding`, "linear", or "cubic" with Keys' coefficient.

    `scales` are the factors as given, or None to compute them from the extents. Coordinates outside of x are clamped.
    """
    b = Builder("resize")
    x, y = b.param("x", X), b.param("y", Y, out=True)
    before, after = extents(X), extents(Y)
    kind = computed_in(X.dtype) if X.dtype.is_float else f32

    def ways(axis: int, index: Expr) -> _Ways:
        return _ways(b, index, before[axis], after[axis], scales[axis], mode, coordinates, rounding, cubic)

    *others, last = (not _stays(*each) for each in zip(before, after, scales, strict=True))
    is_short = not (isinstance(before[-1], int) and isinstance(after[-1], int)) or before[-1] <= _LONG * after[-1]
    if mode != "nearest" and last and any(others) and is_short:
        _by_lines(b, x, y, ways, kind, REACH[mode])
        return b.build()
    times = [_times(*each, coordinates, rounding) for each in zip(before, after, scales, strict=True)]
    if mode == "nearest" and all(times):
        _repeated(b, x, y, [each or 1 for each in times])
    elif mode == "nearest" and last:
        _gathered(b, x, y, ways)
    else:
        with nest(b, after) as indices:
            found = [ways(axis, index) for axis, index in enumerate(indices)]
            b.store(y, indices, _mixed(x, found, kind).astype(X.dtype))
    return b.build()


def _times(before: Extent, after: Extent, scale: float | None, coordinates: str, rounding: str) -> int | None:
    """The factor by which a nearest resize repeats each element along an axis; None if it is not uniform."""
    if _stays(before, after, scale):
        return 1
    if not (isinstance(before, int) and isinstance(after, int) and before) or after % before:
        return None
    times = after // before
    is_first = (coordinates, rounding) == ("asymmetric", "floor")
    is_middle = coordinates in ("half_pixel", "pytorch_half_pixel") and rounding.startswith("round_prefer")
    return times if scale in (None, times) and after > 1 and (is_first or is_middle) else None


def _repeated(b: Builder, x: Buffer, y: Buffer, times: list[int]) -> None:
    """Repeats each element this many times along each axis."""
    with nest(b, [extent for each in zip(x.shape, times, strict=True) for extent in each]) as indices:
        found, steps = indices[::2], indices[1::2]
        places = tuple(at * count + step for at, count, step in zip(found, times, steps, strict=True))
        b.store(y, places, x[found])


def _gathered(b: Builder, x: Buffer, y: Buffer, ways: Callable[[int, Expr], _Ways]) -> None:
    """Copies the nearest elements; their indices along the last axis are computed once."""
    width, columns = x.shape[-1], y.shape[-1]
    places = b.alloc("places", TensorType(i64, (columns,)))
    with b.for_("column", 0, columns) as column:
        b.store(places, (column,), ways(len(x.shape) - 1, column)[0][0])
    with nest(b, y.shape[:-1]) as outer:
        found = [ways(axis, index)[0][0] for axis, index in enumerate(outer)]
        with b.for_("column", 0, columns) as column:
            b.store(y, (*outer, column), x[(*found, Min(Max(places[column], as_expr(0)), width - 1))])


def _by_lines(b: Builder, x: Buffer, y: Buffer, ways: Callable[[int, Expr], _Ways], kind: DType, count: int) -> None:
    """Interpolates a line over all other axes, then along the last one, where `count` neighbours contribute."""
    width, columns = x.shape[-1], y.shape[-1]
    tables = [
        (b.alloc(f"places{k}", TensorType(i64, (columns,))), b.alloc(f"weights{k}", TensorType(kind, (columns,))))
        for k in range(count)
    ]
    with b.for_("column", 0, columns) as column:
        for (places, weights), (at, weight) in zip(tables, ways(len(x.shape) - 1, column), strict=True):
            assert weight is not None
            b.store(places, (column,), at)
            b.store(weights, (column,), weight.astype(kind))
    with nest(b, y.shape[:-1]) as outer:
        line = b.alloc("line", TensorType(kind, (width,)))
        others = [ways(axis, index) for axis, index in enumerate(outer)]
        with b.for_("column", 0, width) as column:
            b.store(line, (column,), _mixed(x, [*others, [(column, None)]], kind))
        with b.for_("column", 0, columns) as column:
            # Always in bounds; the clamp proves it for indices that are read from memory.
            found = [
                line[Min(Max(places[column], as_expr(0)), width - 1)] * weights[column] for places, weights in tables
            ]
            b.store(y, (*outer, column), sum(found[1:], found[0]).astype(y.dtype))


def _stays(before: Extent, after: Extent, scale: float | None) -> bool:
    """Whether an axis is not resized."""
    return before is after or (isinstance(before, int) and before == after and scale in (None, 1.0))


def _mixed(x: Buffer, ways: list[_Ways], kind: DType) -> Expr:
    """The weighted sum of the elements for all combinations of the axes' indices."""
    total: Expr | None = None
    for corner in itertools.product(*ways):
        term = x[tuple(at for at, _ in corner)].astype(kind)
        for _, weight in corner:
            if weight is not None:
                term = term * weight.astype(kind)
        total = term if total is None else total + term
    assert total is not None
    return total


def _ways(
    b: Builder,
    index: Expr,
    before: Extent,
    after: Extent,
    scale: float | None,
    mode: str,
    coordinates: str,
    rounding: str,
    cubic: float,
) -> _Ways:
    """The operand's indices and weights for an index of the result along an axis."""
    if _stays(before, after, scale):
        return [(index, None)]
    place = b.let("place", _place(index, before, after, scale, coordinates))
    last = as_expr(before) - 1
    if mode == "nearest":
        rounded = _rounded(place, rounding)
        return [(b.let("at", Min(Max(Cast(i64, rounded), as_expr(0)), last)), None)]
    if mode == "cubic":
        return _four(b, place, last, cubic)
    inside = b.let("inside", Min(Max(place, as_expr(0.0)), Cast(f64, last)))
    # Always in bounds; the clamp of the integers proves it.
    low = b.let("low", Min(Max(Cast(i64, Call(f64, Op.FLOOR, (inside,))), as_expr(0)), last))
    high = b.let("high", Min(low + 1, last))
    share = b.let("share", inside - Cast(f64, low))
    return [(low, 1 - share), (high, share)]


def _four(b: Builder, place: Expr, last: Expr, a: float) -> _Ways:
    """The four elements around a place, with the weights of Keys' cubic convolution."""
    low = b.let("low", Cast(i64, Call(f64, Op.FLOOR, (place,))))
    share = b.let("share", place - Cast(f64, low))
    found: list[tuple[Expr, Expr | None]] = []
    for step in range(-1, 3):
        x = b.let(f"distance{step + 1}", share - float(step) if step <= 0 else float(step) - share)
        near = ((a + 2) * x - (a + 3)) * x * x + 1.0
        far = ((x - 5.0) * x + 8.0) * x * a - 4.0 * a
        weight = b.let(f"weight{step + 1}", near if step in (0, 1) else far)
        found.append((b.let(f"at{step + 1}", Min(Max(low + step, as_expr(0)), last)), weight))
    return found


def _place(index: Expr, before: Extent, after: Extent, scale: float | None, coordinates: str) -> Expr:
    """The operand's coordinate of an index of the result, as f64."""
    at, old, new = (Cast(f64, as_expr(each)) for each in (index, before, after))
    ratio = new / old if scale is None else as_expr(float(scale))
    if coordinates == "asymmetric":
        return at / ratio
    if coordinates == "align_corners":
        # By the extent before it was rounded down to an integer.
        whole = new if scale is None else old * ratio
        return at * (old - 1) / Max(whole - 1, as_expr(1.0))
    half = (at + 0.5) / ratio - 0.5
    if coordinates == "pytorch_half_pixel":
        return Call(f64, Op.IF_THEN_ELSE, (new > 1, half, as_expr(0.0)))
    return half


def _rounded(place: Expr, rounding: str) -> Expr:
    if rounding == "floor":
        return Call(f64, Op.FLOOR, (place,))
    if rounding == "ceil":
        return Call(f64, Op.CEIL, (place,))
    if rounding == "round_prefer_ceil":
        return Call(f64, Op.FLOOR, (place + 0.5,))
    return Call(f64, Op.CEIL, (place - 0.5,))
