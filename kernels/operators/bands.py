"""Goes over the results of a window by rows, with what lies under each copied side by side, so that taps need no tests.

Pools and depthwise convolutions take some columns of a row of their results at a time, along the last axis. Their band
has a row for each tap along the other axes, with the padding in it. Its neighbours are neighbours in memory.
"""

from __future__ import annotations

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType
from tirlite.kernels.operators.shapes import Extent, product
from tirlite.kernels.operators.window import Window, where_under

COLUMNS = 512  # of a row of results that share a band, at most


def by_bands(window: Window, kind: DType, least: float, planes: Extent, each: Inline) -> Inline:
    """`sweep(x, a, b, y)`: calls `each(band, t, i, first, count, a, b, y)` for all of t below `planes`, in parallel.

    It is to compute `count` results from column `first` on of row i; rows are counted over all axes but the last. The
    tap (r, p) of the q-th of them reads `band[r, q * stride + p * dilation]`; what lies in the padding is `least`.
    """
    places, inputs, before, stride = (
        each[-1] for each in (window.places, window.inputs, window.before, window.strides)
    )
    columns = min(places, COLUMNS) if isinstance(places, int) else COLUMNS
    width = (columns - 1) * stride + (window.size[-1] - 1) * window.dilations[-1] + 1
    rows, lines, outer = (product(each[:-1]) for each in (window.size, window.inputs, window.places))
    row_under = _row_under(window)

    @tl.inline
    def fill(band, x, t, i, first):
        start = first * stride - before
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

    @tl.inline
    def sweep(x, a, b, y):
        images = tl.view(x, x.dtype[planes, lines, inputs])
        for piece in tl.parallel(planes * outer):
            t = piece // outer
            i = piece % outer
            band = tl.alloc(kind[rows, width])
            for block in range((places + columns - 1) // columns):
                first = block * columns
                fill(band, images, t, i, first)
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
