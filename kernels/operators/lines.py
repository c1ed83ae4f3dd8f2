"""Goes over the results of a window by rows, with what lies under each joined in one line, so that taps need no tests.

Pools take some columns of a row of their results at a time, along the last axis. They join the rows under them as they
copy these, which saves most of the work of a window: columns are joined once, for all results that look at them.
"""

from __future__ import annotations

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType
from tirlite.kernels.operators.shapes import Extent, product
from tirlite.kernels.operators.window import Window, row_under

COLUMNS = 512  # of a row of results that share a line, at most
FEW = 16  # rows under a window that are joined in registers


def by_lines(window: Window, kind: DType, least: float, planes: Extent, join: Inline, each: Inline) -> Inline:
    """`sweep(x, a, b, y)`: calls `each(line, t, i, first, count, a, b, y)` for all of t below `planes`, in parallel.

    It is to compute `count` results from column `first` on of row i; rows are counted over all axes but the last. The
    tap p of the q-th of them reads `line[q * stride + p * dilation]`, where what lies under the taps (r, p) of all r is
    joined; what lies in the padding is `least`, which is neutral to `join`.
    """
    places, inputs, before, stride = (
        given[-1] for given in (window.places, window.inputs, window.before, window.strides)
    )
    columns = min(places, COLUMNS) if isinstance(places, int) else COLUMNS
    width = (columns - 1) * stride + (window.size[-1] - 1) * window.dilations[-1] + 1
    rows, lines, outer = map(product, (window.size[:-1], window.inputs[:-1], window.places[:-1]))
    row, axes = row_under(window), len(window.size) - 2
    are_few = isinstance(rows, int) and rows <= FEW and isinstance(lines, int) and lines > 0

    @tl.inline
    def fill(line, x, t, i, start):
        low = min(width, max(0, -start))
        high = min(width, inputs - start)
        for v in range(low):
            line[v] = kind(least)
        for v in range(max(low, high), width):
            line[v] = kind(least)
        if tl.static(are_few):
            for v in range(low, high):
                total = kind(least)
                for r in tl.static(range(rows)):
                    under = min(row(i, r, tl.static(axes)), lines - 1)
                    # A row in the padding is read as the first one, and not taken: so there is no branch.
                    value = tl.select(under >= 0, kind(x[t, max(under, 0), start + v]), kind(least))
                    total = join(total, value)
                line[v] = total
        else:
            # What lies inside is written by the same vectors each time: none is read out of two that were just written.
            for v in range(low, high):
                line[v] = kind(least)
            for r in range(rows):
                # No row is behind the last; the bound says so where that is not seen.
                under = min(row(i, r, tl.static(axes)), lines - 1)
                if under >= 0:
                    for v in range(low, high):
                        line[v] = join(line[v], kind(x[t, under, start + v]))

    @tl.inline
    def sweep(x, a, b, y):
        images = tl.view(x, x.dtype[planes, lines, inputs])
        for piece in tl.parallel(planes * outer):
            t = piece // outer
            i = piece % outer
            line = tl.alloc(kind[width])
            for block in range((places + columns - 1) // columns):
                first = block * columns
                fill(line, images, t, i, first * stride - before)
                each(line, t, i, first, min(columns, places - first), a, b, y)

    return sweep
