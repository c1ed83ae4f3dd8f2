"""Goes over the results of a window by rows, with what lies under each copied side by side, so that taps need no tests.

Pools and depthwise convolutions take some columns of a row of their results at a time, along the last axis. The band of
a convolution has a row for each tap along the other axes, with the padding in it. Pools join these rows to one line as
they copy, which saves most of the work of a window: columns are joined once, for all results that look at them.
"""

from __future__ import annotations

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType, TensorType
from tirlite.kernels.operators.shapes import Extent, product
from tirlite.kernels.operators.window import Window, where_under

COLUMNS = 512  # of a row of results that share a band, at most


def by_bands(window: Window, kind: DType, least: float, planes: Extent, each: Inline) -> Inline:
    """`sweep(x, a, b, y)`: calls `each(band, t, i, first, count, a, b, y)` for all of t below `planes`, in parallel.

    It is to compute `count` results from column `first` on of row i; rows are counted over all axes but the last. The
    tap (r, p) of the q-th of them reads `band[r, q * stride + p * dilation]`; what lies in the padding is `least`.
    """
    inputs, rows, lines, width = (
        window.inputs[-1],
        product(window.size[:-1]),
        product(window.inputs[:-1]),
        _width(window),
    )
    row_under = _row_under(window)

    @tl.inline
    def fill(band, x, t, i, start):
        for r in range(rows):
            # No row is behind the last; the bound says so where that is not seen.
            line = min(row_under(i, r, tl.static(len(window.size) - 2)), lines - 1)
            if line >= 0:
                for v in range(width):
                    at = start + v
                    band[r, v] = kind(x[t, line, at]) if at >= 0 and at < inputs else kind(least)
            else:
                for v in range(width):
                    band[r, v] = kind(least)

    return _sweep(window, kind[rows, width], planes, fill, each)


def by_lines(window: Window, kind: DType, least: float, planes: Extent, join: Inline, each: Inline) -> Inline:
    """`sweep(x, a, b, y)`: as `by_bands`, with what lies under taps (r, p) of all r joined in one line.

    It calls `each(line, t, i, first, count, a, b, y)`. The tap p of the q-th result reads
    `line[q * stride + p * dilation]`; `least` is neutral to `join`.
    """
    inputs, rows, lines, width = (
        window.inputs[-1],
        product(window.size[:-1]),
        product(window.inputs[:-1]),
        _width(window),
    )
    row_under = _row_under(window)

    @tl.inline
    def fill(line, x, t, i, start):
        low = min(width, max(0, -start))
        high = min(width, inputs - start)
        for v in range(low):
            line[v] = kind(least)
        # What lies inside is written by the same vectors each time: none is read out of two that were just written.
        for v in range(low, high):
            line[v] = kind(least)
        for v in range(max(low, high), width):
            line[v] = kind(least)
        for r in range(rows):
            # No row is behind the last; the bound says so where that is not seen.
            under = min(row_under(i, r, tl.static(len(window.size) - 2)), lines - 1)
            if under >= 0:
                for v in range(low, high):
                    line[v] = join(line[v], kind(x[t, under, start + v]))

    return _sweep(window, kind[width], planes, fill, each)


def _columns(window: Window) -> int:
    places = window.places[-1]
    return min(places, COLUMNS) if isinstance(places, int) else COLUMNS


def _width(window: Window) -> Extent:
    """How many columns of the operand lie under those of a band."""
    return (_columns(window) - 1) * window.strides[-1] + (window.size[-1] - 1) * window.dilations[-1] + 1


def _sweep(window: Window, Band: TensorType, planes: Extent, fill: Inline, each: Inline) -> Inline:
    """Goes over all rows, with bands that `fill(band, x, t, i, start)` fills from column `start` of the operand on."""
    places, inputs, before, stride = (
        each[-1] for each in (window.places, window.inputs, window.before, window.strides)
    )
    columns, lines, outer = _columns(window), product(window.inputs[:-1]), product(window.places[:-1])

    @tl.inline
    def sweep(x, a, b, y):
        images = tl.view(x, x.dtype[planes, lines, inputs])
        for piece in tl.parallel(planes * outer):
            t = piece // outer
            i = piece % outer
            band = tl.alloc(Band)
            for block in range((places + columns - 1) // columns):
                first = block * columns
                fill(band, images, t, i, first * stride - before)
                each(band, t, i, first, min(columns, places - first), a, b, y)

    return sweep


def _row_under(window: Window) -> Inline:
    """`row_under(i, r, k)`: the row under tap r of row i of results, -1 in the padding, by the axes up to k."""
    axes, where = len(window.size) - 1, where_under(window)
    inner_places = [product(window.places[k + 1 : -1]) for k in range(axes)]
    inner_taps = [product(window.size[k + 1 : -1]) for k in range(axes)]
    places, size, inputs = window.places, window.size, window.inputs

    @tl.inline
    def row_under(i, r, k):
        if tl.static(k < 0):
            return tl.i64(0)
        else:
            place = i // tl.static(inner_places[k]) % tl.static(places[k])
            at = where(k, place, r // tl.static(inner_taps[k]) % tl.static(size[k]))
            before = row_under(i, r, tl.static(k - 1))
            is_inside = before >= 0 and at >= 0 and at < tl.static(inputs[k])
            return tl.select(is_inside, before * tl.static(inputs[k]) + at, tl.i64(-1))

    return row_under
