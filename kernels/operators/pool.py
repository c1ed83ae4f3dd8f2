"""Pools: the greatest element or the mean under a window that moves over any number of spatial axes."""

from __future__ import annotations

from math import inf

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType, PrimFunc, TensorType
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.order import above, comes_before
from tirlite.kernels.operators.shapes import extents, product
from tirlite.kernels.operators.window import Window, finder, where_under

COLUMNS = 32  # places of the result that share a table


@factory
def max_pool(
    X: TensorType,
    Y: TensorType,
    *,
    window: tuple[int, ...],
    strides: tuple[int, ...],
    pads: tuple[int, ...],
    dilations: tuple[int, ...],
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> PrimFunc:
    """The greatest element under the window; padding counts as less than all. The extents of y are in `ceil_mode`."""
    geometry = _geometry(X, Y, window, strides, pads, dilations)
    least = -inf if X.dtype.is_float else X.dtype.min

    @tl.inline
    def join(total, value):
        return max(total, value)

    @tl.inline
    def end(total, place):
        return total

    return _pool("max_pool", X, Y, geometry, X.dtype, least, join, end)


@factory
def average_pool(
    X: TensorType,
    Y: TensorType,
    *,
    window: tuple[int, ...],
    strides: tuple[int, ...],
    pads: tuple[int, ...],
    dilations: tuple[int, ...],
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> PrimFunc:
    """The sum under the window, divided by the number of elements there, with the padding if that counts.

    What a window has beyond the padding, as `ceil_mode` allows, never counts.
    """
    geometry = _geometry(X, Y, window, strides, pads, dilations)
    kind = computed_in(X.dtype)
    count = _counted(geometry, pads if count_include_pad else None)

    @tl.inline
    def join(total, value):
        return total + value

    @tl.inline
    def end(total, place):
        return total / kind(count(place, 0))

    return _pool("average_pool", X, Y, geometry, kind, 0.0, join, end)


def _geometry(X: TensorType, Y: TensorType, size, strides, pads, dilations) -> Window:
    return Window(extents(X)[2:], extents(Y)[2:], size, strides, pads[: len(size)], dilations)


def _counted(window: Window, pads: tuple[int, ...] | None) -> Inline:
    """`count(place, 0)`: the taps that count at a place of the result: those in the tensor, or within `pads` of it."""
    axes = len(window.size)
    inner = [product(window.places[k + 1 :]) for k in range(axes)]
    lows = [-pads[k] if pads else 0 for k in range(axes)]
    highs = [window.inputs[k] + (pads[axes + k] if pads else 0) for k in range(axes)]
    where = where_under(window)

    @tl.inline
    def count(place, k):
        if tl.static(k == axes):
            return 1
        else:
            position = place // tl.static(inner[k]) % tl.static(window.places[k])
            start = where(k, position, 0)
            dilation = tl.static(window.dilations[k])
            first = max(0, (tl.static(lows[k]) - start + dilation - 1) // dilation)
            behind = min(tl.static(window.size[k]), (tl.static(highs[k]) - start + dilation - 1) // dilation)
            return (behind - first) * count(place, tl.static(k + 1))

    return count


def _pool(
    name: str, X: TensorType, Y: TensorType, window: Window, kind: DType, start: float, join: Inline, end: Inline
) -> PrimFunc:
    (batches, channels), elements, places = extents(X)[:2], product(window.inputs), product(window.places)
    taps, find = window.taps, finder(window, where_under(window))

    @tl.kernel
    def pool(x: X, y: tl.out[Y]):
        images = tl.view(x, x.dtype[batches * channels, elements])
        results = tl.view(y, y.dtype[batches * channels, places])
        panels = (places + COLUMNS - 1) // COLUMNS
        for piece in tl.parallel(batches * panels):
            first = piece % panels * COLUMNS
            table = tl.alloc(tl.i64[taps, COLUMNS])
            runs = tl.alloc(tl.bool_[taps])
            totals = tl.alloc(kind[COLUMNS], scope="local")
            find(table, runs, first, COLUMNS)
            for c in range(channels):
                image = piece // panels * channels + c
                for q in range(COLUMNS):
                    totals[q] = start
                for tap in range(taps):
                    # The table is right; the bounds say so where nobody can tell what an array holds.
                    if runs[tap] and elements >= COLUMNS:
                        at = min(max(table[tap, 0], 0), elements - COLUMNS)
                        for q in range(COLUMNS):
                            totals[q] = join(totals[q], kind(images[image, at + q]))
                    else:
                        for q in range(COLUMNS):
                            near = min(table[tap, q], elements - 1)
                            totals[q] = join(totals[q], kind(images[image, near]) if near >= 0 else start)
                for q in range(min(COLUMNS, places - first)):
                    results[image, first + q] = y.dtype(end(totals[q], first + q))

    return pool.ir.replaced(name=name)


@factory
def max_pool_indices(
    X: TensorType,
    Y: TensorType,
    I: TensorType,
    *,
    window: tuple[int, ...],
    strides: tuple[int, ...],
    pads: tuple[int, ...],
    dilations: tuple[int, ...],
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> PrimFunc:
    """As `max_pool`, and where in its channel each element was found, the first of equals; nan counts as greatest."""
    geometry = _geometry(X, Y, window, strides, pads, dilations)
    (batches, channels), elements, places = extents(X)[:2], product(geometry.inputs), product(geometry.places)
    taps, find, kind = geometry.taps, finder(geometry, where_under(geometry)), computed_in(X.dtype)
    before = comes_before(kind, above)

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
