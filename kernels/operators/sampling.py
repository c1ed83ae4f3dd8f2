"""Images looked at between their elements: at the places of a grid, and in the bins of regions."""

from __future__ import annotations

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType, PrimFunc, TensorType
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.shapes import Extent, extents, product

REACH = {"nearest": 1, "linear": 2, "cubic": 4}  # elements along an axis that one of the result is made of
KEYS = -0.75  # the constant of the kernel of cubic convolution


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
    """y[n, c, place] = x[n, c] at g[n, place], whose numbers go from -1 to 1 along each axis, the last axis first.

    Outside of x there are "zeros", its "border", or its "reflection". With `align_corners` -1 and 1 are the middles of
    the outermost elements, else their edges.
    """
    (batches, channels, *inputs), places = extents(X), product(extents(Y)[2:])
    axes, reach, kind = len(inputs), REACH[mode], computed_in(X.dtype)
    taps, find = reach**axes, _finder(kind, inputs, mode, padding, align_corners)

    @tl.kernel
    def grid_sample(x: X, grid: G, y: tl.out[Y]):
        images = tl.view(x, x.dtype[batches, channels, tl.static(product(inputs))])
        points = tl.view(grid, grid.dtype[batches, places, axes])
        results = tl.view(y, y.dtype[batches, channels, places])
        for piece in tl.parallel(batches * places):
            n = piece // places
            place = piece % places
            weights = tl.alloc(kind[axes, reach], scope="local")
            near = tl.alloc(tl.i64[axes, reach], scope="local")
            for k in tl.static(range(axes)):
                find(weights, near, k, kind(points[n, place, tl.static(axes - 1 - k)]))
            factors = tl.alloc(kind[taps], scope="local")
            ats = tl.alloc(tl.i64[taps], scope="local")
            for tap in range(taps):
                factor = kind(1)
                at = tl.i64(0)
                for k in tl.static(range(axes)):
                    digit = tap // tl.static(reach ** (axes - 1 - k)) % reach
                    inside = near[k, digit] >= 0
                    factor *= weights[k, digit] if inside else 0
                    at = at * tl.static(inputs[k]) + (near[k, digit] if inside else 0)
                factors[tap] = factor
                ats[tap] = at
            for c in range(channels):
                total = kind(0)
                for tap in range(taps):
                    # In bounds as it is: this says so where nobody can tell what an array holds.
                    index = min(max(ats[tap], 0), tl.static(product(inputs)) - 1)
                    total += factors[tap] * kind(images[n, c, index]) if factors[tap] != 0 else 0
                results[n, c, place] = y.dtype(total)

    return grid_sample.ir


def _finder(kind: DType, inputs: list[Extent], mode: str, padding: str, align_corners: bool) -> Inline:
    """`find(weights, near, k, x)`: the elements along axis k near x, -1 for those that are zeros, and their weights."""
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
    """y[r, c] = x[b[r], c] in the region r[r], from (left, top) to (right, bottom) in units of 1 / scale, by bins.

    A bin is the mean of `ratio` samples along each axis, or as many as it has elements; or the `greatest` of them.
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
    """`sample(x, image, c, at_y, at_x)`: the four elements around a place, weighed by nearness; 0 far outside."""

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
