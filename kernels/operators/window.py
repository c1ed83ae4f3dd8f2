"""The geometry of moving windows, and functions that find the elements under them.

For a pool with indices, whose window moves over any number of spatial axes, a table holds for neighbouring places of
the result and each tap of the window the index of the element in its channel, or -1 for the padding. It is computed
once for all channels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self, TypedDict, Unpack

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.kernels.operators.shapes import Extent, is_same, product


class Moves(TypedDict):
    """Attributes of operators: strides, padding before each axis and then after each, and dilations."""

    strides: tuple[int, ...]
    pads: tuple[Extent, ...]
    dilations: tuple[int, ...]


class Window(NamedTuple):
    """For each spatial axis: the extents of input, result and window, the stride, the padding before, the dilation."""

    inputs: tuple[Extent, ...]
    places: tuple[Extent, ...]
    size: tuple[Extent, ...]
    strides: tuple[int, ...]
    before: tuple[Extent, ...]
    dilations: tuple[int, ...]

    @classmethod
    def of(
        cls, inputs: Iterable[Extent], places: Iterable[Extent], size: Iterable[Extent], **moves: Unpack[Moves]
    ) -> Self:
        """A window with these extents that moves so."""
        own = tuple(size)
        return cls(tuple(inputs), tuple(places), own, moves["strides"], moves["pads"][: len(own)], moves["dilations"])

    @property
    def taps(self) -> Extent:
        return product(self.size)

    def with_one_row(self) -> Window:
        """The same with an axis of one element before the others."""
        return Window(*((one, *own) for one, own in zip((1, 1, 1, 1, 0, 1), self, strict=True)))

    def without_last(self) -> Window:
        """The same for all axes but the last one."""
        return Window(*(own[:-1] for own in self))

    @property
    def phases(self) -> tuple[int, ...]:
        """Along each axis, the number of phases, modulo the stride, that taps fall on."""
        axes = zip(self.size, self.strides, self.dilations, strict=True)
        return tuple(min(step, (size - 1) * gap + 1) if isinstance(size, int) else step for size, step, gap in axes)

    @property
    def is_point(self) -> bool:
        """Whether the window is a single element without stride or padding."""
        return all(
            isinstance(each, int) and each == usual
            for given, usual in ((self.size, 1), (self.strides, 1), (self.before, 0))
            for each in given
        ) and all(map(is_same, self.inputs, self.places))


def leaves_out(window: Window, pads: Sequence[Extent]) -> bool:
    """Whether windows of two axes are single elements, without padding."""
    return len(window.size) == 2 and all(isinstance(pad, int) and not pad for pad in pads) and product(window.size) == 1


def where_under(window: Window) -> Inline:
    """`where(k, place, tap)`: the index along axis k under a tap of the window at a place; outside in the padding."""
    strides, before, dilations = window.strides, window.before, window.dilations

    @tl.inline
    def where(k, place, tap):
        return place * tl.static(strides[k]) - tl.static(before[k]) + tap * tl.static(dilations[k])

    return where


def row_under(window: Window) -> Inline:
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


def picking(window: Window) -> Inline:
    """`pick(picked, images, t)`: copies the elements of image t that windows of a single element see."""
    (height, width), (rows, columns), (row_step, step) = window.inputs, window.places, window.strides

    @tl.inline
    def pick(picked, images, t):
        count = images.shape[1]
        whole = tl.view(images, images.dtype[images.shape[0], count, height, width])
        spots = tl.view(picked, images.dtype[count, rows, columns])
        for c in range(count):
            for i in range(rows):
                for j in range(columns):
                    spots[c, i, j] = whole[t, c, i * row_step, j * step]

    return pick


def finder(window: Window, where: Inline) -> Inline:
    """`find(table, runs, first, columns)`: fills table[tap, q] for the places from `first` on.

    runs[tap] is whether the elements under a tap lie one after the other. Places after the last one have none.
    """
    inputs, places, size, axes = window.inputs, window.places, window.size, len(window.size)
    inner_places = [product(places[k + 1 :]) for k in range(axes)]
    inner_taps = [product(size[k + 1 :]) for k in range(axes)]
    taps, count = window.taps, product(places)

    @tl.inline
    def find(table, runs, first, columns):
        coordinates = tl.alloc(tl.i64[axes, columns], scope="local")
        for q in range(columns):
            for k in tl.static(range(axes)):
                coordinates[k, q] = (first + q) // tl.static(inner_places[k]) % tl.static(places[k])
        for tap in range(taps):
            for q in range(columns):
                at = tl.i64(0)
                least = count - 1 - (first + q)
                for k in tl.static(range(axes)):
                    index = where(k, coordinates[k, q], tap // tl.static(inner_taps[k]) % tl.static(size[k]))
                    least = min(least, min(index, tl.static(inputs[k] - 1) - index))
                    at = at * tl.static(inputs[k]) + index
                table[tap, q] = tl.select(least >= 0, at, -1)
            in_line = tl.i64(0)
            for q in range(columns):
                in_line += tl.select(table[tap, q] == table[tap, 0] + q, tl.i64(1), tl.i64(0))
            runs[tap] = table[tap, 0] >= 0 and in_line == columns

    return find
