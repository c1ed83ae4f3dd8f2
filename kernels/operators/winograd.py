"""Convolutions with windows of 3 x 3 and stride 1 by fewer products: Winograd's F(2 x 2, 3 x 3).

A tile of 2 x 2 results takes 16 products for 16 elements of the image, instead of 36. The elements under a tile are
transformed to 16 terms for each channel, and so are the weights, once for all calls; for each of the 16 terms the sum
over channels is a matrix product; these sums are transformed to the results. Source: Lavin and Gray, Fast Algorithms
for Convolutional Neural Networks, 2016. Sums have other terms than in the definition, and so other roundings.
"""

from __future__ import annotations

from typing import NamedTuple

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType, PrimFunc, TensorType
from tirlite.kernels.operators.convolution import OutTile, filling, storing, with_bias
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.shapes import Extent, extents
from tirlite.kernels.operators.window import Window

TERMS = 16
_MANY_LANES, _LANES, _FEW_LANES = 32, 16, 8  # lanes of tiles that are computed together, down to the last ones
_HELD = 3 << 15  # about the elements of terms and sums of a worker: 384 KiB of f32 stay in the L2 cache
_LAST = 1 << 21  # about the terms that fit in the last-level cache besides weights
_BLOCKS = 8  # the most blocks that are summed together
# If all blocks follow one another for each term, what they read of it stays in a cache; with more channels, weights do
# not come fast enough in that order.
_FEW_CHANNELS = 256
_FETCHED = 6  # products that are computed while a weight is fetched
# With at least `_PIECES` pieces, `_PAIR` or groups, workers share the pieces; else the outputs, in `_RUNS` runs.
_PIECES, _PAIR = 4, 2
_RUNS = 8
# The transforms of a tile, measured in products: per channel that is read, and per channel of the result.
_READ, _MADE = 230, 130
_LEAST_GAIN = 0.9
_JOINED = 1.05  # the relative time if workers share each of a few pieces, and wait for each other
_HALVED = 1.1  # the relative time up to which two halves are preferred to one shared piece
_COLUMNS, _ROWS = (31, 15), (2, 3)  # tiles that are computed together with unknown sizes: fewer with many channels
_IN_VAIN = 1.2  # about the relative time of partly filled tiles there


class Tiles(NamedTuple):
    """Tiles whose terms are computed together as one line: `rows` rows of `columns`, with one gap between rows.

    With unknown sizes, `lines` lines of one row each, of at most `columns` tiles, follow each other.
    """

    rows: int
    columns: int
    lines: int = 0

    @classmethod
    def of(cls, places: tuple[Extent, Extent], channels: int) -> Tiles:
        """The tiles that take the least time per result, for results at this many places."""
        rows, columns = (-(-place // 2) if isinstance(place, int) else 0 for place in places)
        if rows and columns:
            heights = {-(-rows // count) for count in range(1, rows + 1)}
            known = [cls(high, columns) for high in sorted(heights, reverse=True)]
            waits = {each: _JOINED if -(-rows // each.rows) < _PIECES else 1 for each in known}
            found = min(known, key=lambda tiles: tiles.cost(rows, channels) * waits[tiles])
            half = cls(-(-rows // 2), columns)
            is_even = half.lanes >= _MANY_LANES and half.time(rows, channels) <= _HALVED * found.time(rows, channels)
            return half if found.rows == rows and is_even else found
        most = 4 * _HELD // (3 * TERMS * channels)  # columns in all, about: few images fill all lines
        wide = next((each for each in _COLUMNS if _ROWS[0] * each <= most), _COLUMNS[-1])
        has_many = not rows or rows > _ROWS[1] * (_PIECES - 1)  # as many rows together as workers can have each
        lines = max(_ROWS[0], min(_ROWS[has_many], most // wide))
        return cls(1, wide, -(-rows // -(-rows // lines)) if rows else lines)

    def cost(self, rows: int, channels: int) -> float:
        """The relative time of their products: more than 1 for wasted rows and data beyond the caches."""
        if self.lines:
            return _IN_VAIN * (1 + _FETCHED / (self.lines * self.columns))
        terms = TERMS * channels * self.lanes
        beyond = max(0.0, min(terms / _HELD - 1, 2)) + max(0.0, terms / _LAST - 1)
        computed = -(-rows // self.rows) * self.lanes / (rows * self.columns)
        return computed * (1 + _FETCHED / self.lanes) + beyond / 8

    def time(self, rows: int, channels: int) -> float:
        """The same if half a vector takes as long as a whole one."""
        return self.cost(rows, channels) * -(-self.lanes // _LANES) * _LANES / self.lanes

    @property
    def lanes(self) -> int:
        """The length of the line, in whole vectors; one more if others follow."""
        beyond = _FEW_LANES if self.lines else 0
        return -(-(self.rows * (self.columns + 1) - 1) // _FEW_LANES) * _FEW_LANES + beyond

    @property
    def apart(self) -> int:
        """The distance between channels, such that they map to different sets of a cache."""
        return (-(-(self.lanes + self.columns * max(0, self.lines - 1)) // _LANES) | 1) * _LANES

    @property
    def high(self) -> int:
        """The rows of tiles."""
        return max(self.rows, self.lines)


def _are_enough(pieces: int) -> bool:
    """Whether workers get whole pieces: two or many balance, and each piece's data stay in one cache."""
    return pieces == _PAIR or pieces >= _PIECES


def pays(taken: int, outputs: int, places: tuple[Extent, Extent]) -> bool:
    """Whether this is faster than the direct convolution."""
    if 0 in (taken, outputs, *places):
        return False
    # Take unknown extents as even.
    rows, columns = (place if isinstance(place, int) else 2 for place in places)
    tiles, down = Tiles.of(places, taken), -(-rows // 2)
    # Do not reject it because of the cost of halves for two workers.
    cost = min(tiles.cost(down, taken), (tiles if tiles.lines else Tiles(down, tiles.columns)).cost(down, taken))
    tile = cost * TERMS * taken * outputs + _READ * taken + _MADE * outputs
    return down * -(-columns // 2) * tile < _LEAST_GAIN * 9 * taken * outputs * rows * columns


@factory
def winograd(
    X: TensorType, W: TensorType, B: TensorType | None, Y: TensorType, *, pads: tuple[int, int, int, int]
) -> PrimFunc:
    """The convolution of x with windows of 3 x 3, of which w has the terms.

    x has the axes batch, channel, row and column, w block of outputs, term, channel and output of the block, with zeros
    after the last output. Groups of channels have whole blocks each. `pads` are those above and before, below and
    after.
    """
    kind, groups = computed_in(X.dtype), extents(X)[1] // extents(W)[2]
    sweep = _sweep((X, W, Y), kind, pads, storing(kind, groups, has_bias=B is not None))

    return with_bias("winograd", (X, W, B, Y), (groups, extents(Y)[1] // groups), sweep)


def _sweep(
    types: tuple[TensorType, TensorType, TensorType], kind: DType, pads: tuple[int, ...], store: Inline
) -> Inline:
    """`sweep(x, w, bias, y)` stores all results by `store`, those of rows of tiles together, in parallel."""
    (batches, channels, height, width), (blocks, _, taken, size), (_, outputs, down, across) = map(extents, types)
    groups = channels // taken
    images, outputs, blocks = batches * groups, outputs // groups, blocks // groups
    rows, columns, tiles = (down + 1) // 2, (across + 1) // 2, Tiles.of((down, across), taken)
    most, lines, high, apart = tiles.columns, tiles.lines, tiles.high, tiles.apart
    window = Window((height, width), (rows, columns), (4, 4), (2, 2), pads[:2], (1, 1))
    block = OutTile(tiles.rows, tiles.columns, tiles.columns + 1, tiles.lanes, (1, 1), by_rows=False)
    fill = filling(window, block, kind, whole=not lines)
    bands, parts = -(-rows // high), (columns + tiles.columns - 1) // tiles.columns if lines else 1
    # An unknown number of images may be one, of rows there are many.
    pieces = (images if isinstance(batches, int) else groups) * (bands if isinstance(bands, int) else _PIECES)
    has_pieces = _are_enough(pieces) or groups > 1
    over_pieces, within = (tl.parallel, range) if has_pieces else (range, tl.parallel)
    together = min(_BLOCKS, -(-blocks // (1 if has_pieces else _RUNS)))
    runs = -(-blocks // together)
    transform, multiply = _transform(tiles), _multiply(tiles, kind, taken, divmod(outputs, size), _own(groups, blocks))
    finish, held_lines = _finish(tiles, kind, (down, across), store), block.held

    @tl.inline
    def terms_of(terms, planes, t, row, column, wide, c):
        for k in range(max(1, lines)):
            held = tl.alloc(kind[1, 1, 2, 2, held_lines])
            fill(held, planes, 0, t * taken + c, 0, 0, 0, row + k, column)
            transform(terms, held, c, k, wide)

    @tl.inline
    def results_of(results, terms, w, t, row, column, wide, run, bias):
        first = run * together
        sums = tl.alloc(kind[TERMS, together * size + 1, apart])
        multiply(sums, terms, w, t, first, together, wide)
        for k in range(min(together * size, outputs - first * size)):
            finish(results, sums, t, first * size + k, k, row, column, wide, bias)

    @tl.inline
    def place(piece):
        """For a piece: the number of its image or group, its first row and column, and its number of columns."""
        row, column = piece // parts % bands * high, piece % parts * most
        wide = max(1, min(most, columns - column)) if tl.static(lines) else columns
        return piece // (bands * parts), row, column, wide

    @tl.inline
    def sweep(x, w, bias, y):
        planes = tl.view(x, x.dtype[images * taken, 1, 1, height, width])
        results = tl.view(y, y.dtype[images, outputs, 1, down, across])
        with tl.allow("contract"):
            for piece in over_pieces(images * bands * parts):
                t, row, column, wide = place(piece)
                terms = tl.alloc(kind[TERMS, taken + 1, apart])
                for c in within(taken):
                    terms_of(terms, planes, t, row, column, wide, c)
                for run in within(runs):
                    results_of(results, terms, w, t, row, column, wide, run, bias)

    return sweep


def _own(groups: int, blocks: int) -> Inline:
    """`own(t, number)`: the number among all blocks of block `number` of plane t's group."""

    @tl.inline
    def own(t, number):
        if tl.static(groups == 1):
            return number
        else:
            return t % groups * blocks + number

    return own


def _starting(tiles: Tiles) -> Inline:
    """`start(k, wide)`: where row k of tiles begins in a line; the clamp states its bounds for the compiler."""
    lines, most = tiles.lines, tiles.columns

    @tl.inline
    def start(k, wide):
        if tl.static(lines):
            return max(0, min(k * wide, k * most))
        else:
            return k * (wide + 1)

    return start


def _transform(tiles: Tiles) -> Inline:
    """`transform(terms, held, c, k, wide)`: the terms of a channel, of the elements under all tiles of a line.

    Those lie in `held` by the parity of row and column, then in lines as the tiles do. What is beyond the last of
    several lines is there, too, up to a whole vector.
    """
    apart, lines, known, start = tiles.columns + 1, tiles.lines, tiles.lanes, _starting(tiles)

    @tl.inline
    def lanes(wide):
        if tl.static(lines):
            return wide + _FEW_LANES
        else:
            return known

    @tl.inline
    def along(held, row, v, q):
        """The q-th term of four elements of a row, from that under a tile on."""
        parity, at = tl.static(row % 2), v + tl.static(row // 2) * apart
        if tl.static(q == 0):
            return held[0, 0, parity, 0, at] - held[0, 0, parity, 0, at + 1]
        elif tl.static(q == 1):
            return held[0, 0, parity, 1, at] + held[0, 0, parity, 0, at + 1]
        elif tl.static(q == 2):
            return held[0, 0, parity, 0, at + 1] - held[0, 0, parity, 1, at]
        else:
            return held[0, 0, parity, 1, at] - held[0, 0, parity, 1, at + 1]

    @tl.inline
    def transform(terms, held, c, k, wide):
        begin = start(k, wide)
        for v in range(lanes(wide)):
            for q in tl.static(range(4)):
                first, second = along(held, 0, v, q), along(held, 1, v, q)
                third, last = along(held, 2, v, q), along(held, 3, v, q)
                terms[q, c, begin + v] = first - third
                terms[4 + q, c, begin + v] = second + third
                terms[8 + q, c, begin + v] = third - second
                terms[12 + q, c, begin + v] = second - last

    return transform


def _multiply(tiles: Tiles, kind: DType, taken: int, blocks: tuple[int, int], own: Inline) -> Inline:
    """`multiply(sums, terms, w, t, first, count, wide)`: for each term sums over channels, for this many blocks.

    `blocks` are those of a group that are whole, and the outputs of the one after them; `own(t, b)` is one's number.
    """
    (whole, left), lines, known, most = blocks, tiles.lines, tiles.lanes, tiles.apart

    @tl.inline
    def line(wide):
        if tl.static(lines):
            return (lines * wide + _FEW_LANES - 1) // _FEW_LANES * _FEW_LANES
        else:
            return known

    @tl.inline
    def add_up(sums, terms, w, t, p, first, b, outputs, start, lanes):
        for k in range(outputs):
            for q in range(lanes):
                total = kind(0)
                for c in range(taken):
                    total += kind(w[own(t, first + b), p, c, k]) * terms[p, c, start + q]
                sums[p, b * w.shape[3] + k, start + q] = total

    @tl.inline
    def block(sums, terms, w, t, p, first, b, outputs, wide):
        all = line(wide)
        many = min(all // _MANY_LANES, most // _MANY_LANES)
        for lanes in range(many):
            add_up(sums, terms, w, t, p, first, b, outputs, lanes * _MANY_LANES, _MANY_LANES)
        if tl.static(lines or known % _MANY_LANES >= _LANES):
            if all % _MANY_LANES >= _LANES:
                add_up(sums, terms, w, t, p, first, b, outputs, min(many * _MANY_LANES, most - _LANES), _LANES)
        if tl.static(lines or known % _LANES > 0):
            if all % _LANES > 0:
                add_up(sums, terms, w, t, p, first, b, outputs, max(0, min(all, most) - _FEW_LANES), _FEW_LANES)

    @tl.inline
    def multiply(sums, terms, w, t, first, count, wide):
        full = min(count, whole - first)
        if tl.static(taken <= _FEW_CHANNELS):
            for p in range(TERMS):
                for b in range(full):
                    block(sums, terms, w, t, p, first, b, w.shape[3], wide)
        else:
            for b in range(full):
                for p in range(TERMS):
                    block(sums, terms, w, t, p, first, b, w.shape[3], wide)
        if tl.static(left):
            if full < count and first + full == whole:
                for p in range(TERMS):
                    block(sums, terms, w, t, p, first, full, left, wide)

    return multiply


def _finish(tiles: Tiles, kind: DType, places: tuple[Extent, Extent], store: Inline) -> Inline:
    """`finish(y, sums, t, o, k, row, column, wide, bias)`: results of an output, of its sums, in rows of tiles."""
    (_, most, lines), high, (down, across), start = tiles, tiles.high, places, _starting(tiles)

    @tl.inline
    def below(sums, k, q, at):
        first, second, third = sums[q, k, at], sums[4 + q, k, at], sums[8 + q, k, at]
        return first + second + third, second - third - sums[12 + q, k, at]

    @tl.inline
    def columns_left(column, wide):
        if tl.static(lines):
            return min(2 * wide, across - 2 * column)
        else:
            return across

    @tl.inline
    def finish(y, sums, t, o, k, row, column, wide, bias):
        for i in range(min(high, (down + 1) // 2 - row)):
            pair = tl.alloc(kind[2, 2 * most])
            for j in range(wide):
                at = start(i, wide) + j
                a, e = below(sums, k, 0, at)
                b, f = below(sums, k, 1, at)
                c, g = below(sums, k, 2, at)
                d, h = below(sums, k, 3, at)
                pair[0, 2 * j], pair[0, 2 * j + 1] = a + b + c, b - c - d
                pair[1, 2 * j], pair[1, 2 * j + 1] = e + f + g, f - g - h
            for r in range(min(2, down - 2 * (row + i))):
                for v in range(columns_left(column, wide)):
                    store(y, t, o, 0, 2 * (row + i) + r, 2 * column + v, pair[r, v], bias)

    return finish
