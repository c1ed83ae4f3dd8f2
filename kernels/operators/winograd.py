"""Convolutions with windows of 3 x 3 in steps of one by fewer products: Winograd's F(2 x 2, 3 x 3).

Four results, a tile of 2 x 2, are made of 16 elements of the image by 16 products instead of 36. The elements under a
tile are added up to 16 terms, those of a channel, and so are the weights, once for all calls; for each of the 16 the
sum over channels of their products is a product of matrices; these sums are added up to the results. Source: Lavin and
Gray, Fast Algorithms for Convolutional Neural Networks, 2016. Sums are of other terms than those of the definition.
"""

from __future__ import annotations

from typing import NamedTuple

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType, PrimFunc, TensorType
from tirlite.kernels.operators.convolution import Block, filling, storing
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.shapes import extents
from tirlite.kernels.operators.window import Window

TERMS = 16
_MANY_LANES, _LANES, _FEW_LANES = 32, 16, 8  # tiles go together by as many lanes as there are, to the last ones
_HELD = 3 << 15  # elements of terms and sums that a worker holds, about: 384 KiB of f32 stay in the second cache
_BLOCKS = 8  # that are summed up together, at most
_FETCHED = 6  # products that are computed while a weight is fetched
_PIECES = 4  # for workers, at least; where there are fewer, outputs are spread over so many runs
_RUNS = 8
# What a tile takes beside its products, in products: for a channel that is read, and for one of the result.
_READ, _MADE = 230, 130
_LEAST_GAIN = 0.9


class Tiles(NamedTuple):
    """Tiles whose terms are held together, in a line: so many rows of so many, with one between two rows."""

    rows: int
    columns: int

    @classmethod
    def of(cls, places: tuple[int, int], channels: int) -> Tiles:
        """Of all over results at so many places, those that take the least time for each."""
        rows, columns = ((place + 1) // 2 for place in places)
        heights = sorted({-(-rows // count) for count in range(1, rows + 1)}, reverse=True)
        return min((cls(high, columns) for high in heights), key=lambda tiles: tiles.cost(rows, channels))

    def cost(self, rows: int, channels: int) -> float:
        """How long their products take, beside those of all rows alone: what goes beyond the last is made in vain."""
        beyond = TERMS * channels * self.lanes / _HELD - 1
        computed = -(-rows // self.rows) * self.lanes / (rows * self.columns)
        return computed * (1 + _FETCHED / self.lanes) + max(0.0, min(beyond, 2)) / 8

    @property
    def lanes(self) -> int:
        """The line, by whole vectors."""
        return -(-(self.rows * (self.columns + 1) - 1) // _FEW_LANES) * _FEW_LANES

    @property
    def apart(self) -> int:
        """How far those of one channel lie from those of the next: such that their sets in a cache differ."""
        return (-(-self.lanes // _LANES) | 1) * _LANES


def pays(taken: int, outputs: int, places: tuple[int, int]) -> bool:
    """Whether this takes less time than sums over all that is under the windows."""
    if not all((taken, outputs, *places)):
        return False
    rows, columns = ((place + 1) // 2 for place in places)
    products = Tiles.of(places, taken).cost(rows, taken) * TERMS * taken * outputs
    tile = products + _READ * taken + _MADE * outputs
    return rows * columns * tile < _LEAST_GAIN * 9 * taken * outputs * places[0] * places[1]


@factory
def winograd(
    X: TensorType, W: TensorType, B: TensorType | None, Y: TensorType, *, pads: tuple[int, int, int, int]
) -> PrimFunc:
    """The convolution of x with windows of 3 x 3, of which w has the terms.

    x has the axes batch, channel, row and column, w term, block of outputs, channel and output of the block, with zeros
    behind the last output. `pads` are those above and before, below and behind.
    """
    kind, outputs = computed_in(X.dtype), extents(Y)[1]
    sweep = _sweep((X, W, Y), kind, pads, storing(kind, 1, has_bias=B is not None))

    if B is None:

        @tl.kernel
        def winograd(x: X, w: W, y: tl.out[Y]):
            sweep(x, w, x, y)

    else:

        @tl.kernel
        def winograd(x: X, w: W, b: B, y: tl.out[Y]):
            biases = tl.view(b, b.dtype[1, outputs])
            sweep(x, w, biases, y)

    return winograd.ir


def _sweep(
    types: tuple[TensorType, TensorType, TensorType], kind: DType, pads: tuple[int, ...], store: Inline
) -> Inline:
    """`sweep(x, w, bias, y)` stores all results by `store`, those of rows of tiles together, in parallel."""
    (batches, taken, height, width), (_, blocks, _, size), (_, outputs, down, across) = map(extents, types)
    rows, tiles = (down + 1) // 2, Tiles.of((down, across), taken)
    high, beside, apart = tiles.rows, tiles.columns + 1, tiles.apart
    window = Window((height, width), (rows, tiles.columns), (4, 4), (2, 2), pads[:2], (1, 1))
    block = Block(high, tiles.columns, beside, tiles.lanes, (1, 1), by_rows=False)
    fill = filling(window, block, kind, whole=True)
    bands = -(-rows // high)
    has_pieces = (batches if isinstance(batches, int) else 1) * bands >= _PIECES
    together = min(_BLOCKS, -(-blocks // (1 if has_pieces else _RUNS)))
    runs = -(-blocks // together)
    transform, multiply = _transform(tiles), _multiply(tiles, kind, taken, divmod(outputs, size))
    finish, lines = _finish(tiles, kind, (down, across), store), block.held

    @tl.inline
    def terms_of(terms, planes, t, row, c):
        held = tl.alloc(kind[1, 1, 2, 2, lines])
        fill(held, planes, 0, t * taken + c, 0, 0, 0, row, 0)
        transform(terms, held, c)

    @tl.inline
    def results_of(results, terms, w, t, row, run, bias):
        first = run * together
        sums = tl.alloc(kind[TERMS, together * size + 1, apart])
        multiply(sums, terms, w, first, together)
        for k in range(min(together * size, outputs - first * size)):
            finish(results, sums, t, first * size + k, k, row, bias)

    @tl.inline
    def sweep(x, w, bias, y):
        planes = tl.view(x, x.dtype[batches * taken, 1, 1, height, width])
        results = tl.view(y, y.dtype[batches, outputs, 1, down, across])
        with tl.allow("contract"):
            if tl.static(has_pieces):
                for piece in tl.parallel(batches * bands):
                    terms = tl.alloc(kind[TERMS, taken + 1, apart])
                    for c in range(taken):
                        terms_of(terms, planes, piece // bands, piece % bands * high, c)
                    for run in range(runs):
                        results_of(results, terms, w, piece // bands, piece % bands * high, run, bias)
            else:
                for piece in range(batches * bands):
                    terms = tl.alloc(kind[TERMS, taken + 1, apart])
                    for c in tl.parallel(taken):
                        terms_of(terms, planes, piece // bands, piece % bands * high, c)
                    for run in tl.parallel(runs):
                        results_of(results, terms, w, piece // bands, piece % bands * high, run, bias)

    return sweep


def _transform(tiles: Tiles) -> Inline:
    """`transform(terms, held, c)`: the terms of a channel, of the elements under all tiles.

    Those lie in `held` by the parity of row and column, then in lines as the tiles do.
    """
    apart, lanes = tiles.columns + 1, tiles.lanes

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
    def transform(terms, held, c):
        for v in range(lanes):
            for q in tl.static(range(4)):
                first, second = along(held, 0, v, q), along(held, 1, v, q)
                third, last = along(held, 2, v, q), along(held, 3, v, q)
                terms[q, c, v] = first - third
                terms[4 + q, c, v] = second + third
                terms[8 + q, c, v] = third - second
                terms[12 + q, c, v] = second - last

    return transform


def _multiply(tiles: Tiles, kind: DType, taken: int, blocks: tuple[int, int]) -> Inline:
    """`multiply(sums, terms, w, first, count)`: for each term the sums over channels, for so many blocks of outputs.

    `blocks` are those that are whole, and the outputs of the one behind them.
    """
    whole, left = blocks
    many, rest = divmod(tiles.lanes, _MANY_LANES)
    last = tiles.lanes - rest % _LANES

    @tl.inline
    def add_up(sums, terms, w, p, first, b, outputs, start, lanes):
        for k in range(outputs):
            for q in range(lanes):
                total = kind(0)
                for c in range(taken):
                    total += kind(w[p, first + b, c, k]) * terms[p, c, start + q]
                sums[p, b * w.shape[3] + k, start + q] = total

    @tl.inline
    def block(sums, terms, w, p, first, b, outputs):
        for lanes in range(many):
            add_up(sums, terms, w, p, first, b, outputs, lanes * _MANY_LANES, _MANY_LANES)
        if tl.static(rest >= _LANES):
            add_up(sums, terms, w, p, first, b, outputs, many * _MANY_LANES, _LANES)
        if tl.static(rest % _LANES):
            add_up(sums, terms, w, p, first, b, outputs, last, _FEW_LANES)

    @tl.inline
    def multiply(sums, terms, w, first, count):
        for p in range(TERMS):
            full = min(count, whole - first)
            for b in range(full):
                block(sums, terms, w, p, first, b, w.shape[3])
            if tl.static(left):
                if full < count and first + full == whole:
                    block(sums, terms, w, p, first, full, left)

    return multiply


def _finish(tiles: Tiles, kind: DType, places: tuple[int, int], store: Inline) -> Inline:
    """`finish(y, sums, t, o, k, row, bias)`: the results of an output, of its sums, in rows of tiles from `row` on."""
    (high, columns), (down, across) = tiles, places

    @tl.inline
    def below(sums, k, q, at):
        first, second, third = sums[q, k, at], sums[4 + q, k, at], sums[8 + q, k, at]
        return first + second + third, second - third - sums[12 + q, k, at]

    @tl.inline
    def finish(y, sums, t, o, k, row, bias):
        for i in range(min(high, (down + 1) // 2 - row)):
            pair = tl.alloc(kind[2, 2 * columns])
            for j in range(columns):
                at = i * (columns + 1) + j
                a, e = below(sums, k, 0, at)
                b, f = below(sums, k, 1, at)
                c, g = below(sums, k, 2, at)
                d, h = below(sums, k, 3, at)
                pair[0, 2 * j], pair[0, 2 * j + 1] = a + b + c, b - c - d
                pair[1, 2 * j], pair[1, 2 * j + 1] = e + f + g, f - g - h
            for r in range(min(2, down - 2 * (row + i))):
                for v in range(across):
                    store(y, t, o, 0, 2 * (row + i) + r, v, pair[r, v], bias)

    return finish
