"""Pooling: the maximum or the mean of a sliding window over any number of spatial axes.

For some columns of a result row, the input rows under the window are first joined into one line: so each column is
joined once for all results that read it, and taps need no bounds checks. Short rows are processed together.
"""

from __future__ import annotations

from math import inf
from typing import Unpack

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType, PrimFunc, TensorType
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.order import above as is_above, comes_before
from tirlite.kernels.operators.reduce import added, greatest
from tirlite.kernels.operators.shapes import Extent, extents, product
from tirlite.kernels.operators.window import Moves, Window, finder, row_under, where_under

LINE_COLUMNS = 512  # the most columns of a result row that share a line
FEW = 16  # the most rows of a window that are joined in registers
# Lines of at most `NARROW` columns are filled several at a time, of about `HELD` elements: reading what was just
# written as other vectors has to wait. Up to `FEWEST` rows of that width are joined in a loop, by masked vectors.
NARROW, HELD, FEWEST = 32, 1024, 3


def by_lines(window: Window, kind: DType, least: float, planes: Extent, join: Inline, each: Inline) -> Inline:
    """`sweep(x, a, b, y)`: calls `each(held, t, i, k, first, count, a, b, y)` for all t below `planes`, in parallel.

    `each` computes `count` results from column `first` on of row i; rows are counted over all axes but the last. Tap p
    of the q-th result reads `held[k, q * stride + p * dilation]`, which has the elements under the taps (r, p) of all r
    joined. Padding is `least`, which is neutral to `join`.
    """
    places, inputs, before, stride = (
        given[-1] for given in (window.places, window.inputs, window.before, window.strides)
    )
    columns = min(places, LINE_COLUMNS) if isinstance(places, int) else LINE_COLUMNS
    width = (columns - 1) * stride + (window.size[-1] - 1) * window.dilations[-1] + 1
    lines, outer = product(window.inputs[:-1]), product(window.places[:-1])
    high = max(1, min(outer, HELD // max(1, width))) if isinstance(outer, int) and columns <= NARROW else 1
    bands, fill = (outer + high - 1) // high, _joining(window, kind, least, width, join)

    @tl.inline
    def sweep(x, a, b, y):
        images = tl.view(x, x.dtype[planes, lines, inputs])
        for piece in tl.parallel(planes * bands):
            t = piece // bands
            top = piece % bands * high
            held = tl.alloc(kind[high, width])
            for block in range((places + columns - 1) // columns):
                first = block * columns
                for k in range(min(high, outer - top)):
                    fill(held, k, images, t, top + k, first * stride - before)
                for k in range(min(high, outer - top)):
                    each(held, t, top + k, k, first, min(columns, places - first), a, b, y)

    return sweep


def _joining(window: Window, kind: DType, least: float, width: Extent, join: Inline) -> Inline:
    """`fill(held, k, x, t, i, start)` fills line k with the joined input rows of result row i, from `start` on."""
    rows, lines, inputs = product(window.size[:-1]), product(window.inputs[:-1]), window.inputs[-1]
    row, axes = row_under(window), len(window.size) - 2
    are_few = isinstance(rows, int) and rows <= FEW and isinstance(lines, int) and lines > 0
    is_narrow = width <= NARROW and isinstance(rows, int) and rows <= FEWEST

    @tl.inline
    def under(x, t, i, r, column):
        """An element in row r of the window; in the padding, line 0 is read and discarded, to avoid a branch."""
        line = min(row(i, r, tl.static(axes)), lines - 1)
        return tl.select(line >= 0, kind(x[t, max(line, 0), column]), kind(least))

    @tl.inline
    def fill(held, k, x, t, i, start):
        low = min(width, max(0, -start))
        high = min(width, inputs - start)
        for v in range(low):
            held[k, v] = kind(least)
        for v in range(max(low, high), width):
            held[k, v] = kind(least)
        if tl.static(are_few):
            for v in range(low, high):
                total = kind(least)
                if tl.static(is_narrow):
                    for r in range(rows):
                        total = join(total, under(x, t, i, r, start + v))
                else:
                    for r in tl.static(range(rows)):
                        total = join(total, under(x, t, i, r, start + v))
                held[k, v] = total
        else:
            # The inside is written by the same vectors each time: none is read from two that were just written.
            for v in range(low, high):
                held[k, v] = kind(least)
            for r in range(rows):
                # The bound shows that no row is after the last one.
                line = min(row(i, r, tl.static(axes)), lines - 1)
                if line >= 0:
                    for v in range(low, high):
                        held[k, v] = join(held[k, v], kind(x[t, line, start + v]))

    return fill


COLUMNS = 32  # places of the result that share a table


@factory
def max_pool(X: TensorType, Y: TensorType, *, window: tuple[int, ...], **moves: Unpack[Moves]) -> PrimFunc:
    """The greatest element under the window; padding counts as less than all."""
    geometry = Window.of(extents(X)[2:], extents(Y)[2:], window, **moves)
    least = -inf if X.dtype.is_float else X.dtype.min

    @tl.inline
    def end(total, along, above, j):
        return total

    return _pool("max_pool", X, Y, geometry, X.dtype, least, greatest, end)


@factory
def average_pool(
    X: TensorType, Y: TensorType, *, window: tuple[int, ...], count_include_pad: bool = False, **moves: Unpack[Moves]
) -> PrimFunc:
    """The sum under the window, divided by the number of elements there, with the padding if that counts.

    What a window has beyond the padding never counts.
    """
    geometry = Window.of(extents(X)[2:], extents(Y)[2:], window, **moves)
    kind = computed_in(X.dtype)
    counted = moves["pads"] if count_include_pad else None
    if _is_full(geometry, counted):
        return _pool("average_pool", X, Y, geometry, kind, 0.0, added, _share_of(kind, geometry.taps))
    return _pool("average_pool", X, Y, geometry, kind, 0.0, added, _share, _counted(geometry, kind, counted))


@tl.inline
def _share(total, along, above, j):
    return total / (above * along[j])


def _share_of(kind: DType, taps: Extent) -> Inline:
    @tl.inline
    def share(total, along, above, j):
        return total / kind(taps)

    return share


def _is_full(window: Window, pads: tuple[int, ...] | None) -> bool:
    """Whether all taps are inside everywhere, as far as extents are known."""
    ends = pads[len(window.size) :] if pads else [0] * len(window.size)
    return all(
        isinstance(inputs, int)
        and isinstance(places, int)
        and (pads or not before)
        and (places - 1) * stride - before + (size - 1) * dilation < inputs + end
        for inputs, places, size, stride, before, dilation, end in zip(*window, ends, strict=True)
    )


def _counted(window: Window, kind: DType, pads: tuple[int, ...] | None) -> tuple[Inline, Inline]:
    """`along(j)` and `above(i)`: the taps that count in column j and in row i: those in the tensor, or in `pads`."""
    axes = len(window.size)
    inner = [product(window.places[k + 1 : -1]) for k in range(axes)]
    lows = [-pads[k] if pads else 0 for k in range(axes)]
    highs = [window.inputs[k] + (pads[axes + k] if pads else 0) for k in range(axes)]
    where = where_under(window)

    @tl.inline
    def count(position, k):
        start = where(k, position, 0)
        dilation = tl.static(window.dilations[k])
        first = max(0, (tl.static(lows[k]) - start + dilation - 1) // dilation)
        behind = min(tl.static(window.size[k]), (tl.static(highs[k]) - start + dilation - 1) // dilation)
        return behind - first

    @tl.inline
    def up_to(i, k):
        if tl.static(k < 0):
            return tl.i64(1)
        else:
            position = i // tl.static(inner[k]) % tl.static(window.places[k])
            return count(position, k) * up_to(i, tl.static(k - 1))

    @tl.inline
    def above(i):
        return kind(up_to(i, tl.static(axes - 2)))

    @tl.inline
    def along(j):
        return kind(count(j, tl.static(axes - 1)))

    return along, above


@tl.inline
def _one(place):
    return 1


def _pool(
    name: str,
    X: TensorType,
    Y: TensorType,
    window: Window,
    kind: DType,
    start: float,
    join: Inline,
    end: Inline,
    counted: tuple[Inline, Inline] | None = None,
) -> PrimFunc:
    """A pool of values from `start` on; `end(total, along, above, j)` is its result in column j.

    `along` has a number for each column, and `above` is one of the row, as `counted` makes them.
    """
    planes, outer, places = product(extents(X)[:2]), product(window.places[:-1]), window.places[-1]
    taps, stride, dilation = window.size[-1], window.strides[-1], window.dilations[-1]
    of_column, of_row = counted or (_one, _one)

    @tl.inline
    def each(held, t, i, k, first, count, a, along, results):
        above = of_row(i)
        for q in range(count):
            total = kind(start)
            for p in range(taps):
                total = join(total, held[k, q * stride + p * dilation])
            results[t, i, first + q] = results.dtype(end(total, along, above, first + q))

    sweep = by_lines(window, kind, start, planes, join, each)

    @tl.kernel
    def pool(x: X, y: tl.out[Y]):
        results = tl.view(y, y.dtype[planes, outer, places])
        if tl.static(counted is None):
            sweep(x, y, y, results)
        else:
            along = tl.alloc(kind[places])
            for j in range(places):
                along[j] = of_column(j)
            sweep(x, along, along, results)

    return pool.ir.named(name)


@factory
def max_pool_indices(
    X: TensorType, Y: TensorType, I: TensorType, *, window: tuple[int, ...], **moves: Unpack[Moves]
) -> PrimFunc:
    """As `max_pool`, and where in its channel each element was found, the first of equals; nan counts as greatest."""
    geometry = Window.of(extents(X)[2:], extents(Y)[2:], window, **moves)
    (batches, channels), elements, places = extents(X)[:2], product(geometry.inputs), product(geometry.places)
    taps, find, kind = geometry.taps, finder(geometry, where_under(geometry)), computed_in(X.dtype)
    before = comes_before(kind, is_above)

    @tl.kernel
    def max_pool_indices(x: X, y: tl.out[Y], indices: tl.out[I]):
        images = tl.view(x, x.dtype[batches * channels, elements])
        results = tl.view(y, y.dtype[batches * channels, places])
        found = tl.view(indices, indices.dtype[batches * channels, places])
        panels = (places + COLUMNS - 1) // COLUMNS
        for piece in tl.parallel(batches * panels):
            first = piece % panels * COLUMNS
            table = tl.alloc(tl.i64[taps, COLUMNS])
            runs = tl.alloc(tl.bool_[taps])
            find(table, runs, first, COLUMNS)
            for c in range(channels):
                image = piece // panels * channels + c
                for q in range(min(COLUMNS, places - first)):
                    most = kind(0)
                    at = tl.i64(-1)
                    for tap in range(taps):
                        near = min(table[tap, q], elements - 1)
                        value = kind(images[image, near]) if near >= 0 else kind(0)
                        better = near >= 0 and (at < 0 or before(value, most))
                        most = tl.select(better, value, most)
                        at = tl.select(better, near, at)
                    results[image, first + q] = y.dtype(most)
                    found[image, first + q] = indices.dtype(at)

    return max_pool_indices.ir
