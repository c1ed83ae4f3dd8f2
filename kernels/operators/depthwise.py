"""Depthwise convolutions: each output sees one channel, so that there is nothing for products of matrices to share.

Some rows of a plane are copied with the padding around them, one behind the other, apart by their phase: with steps of
two the even columns lie before the odd ones, and so do rows. What lies under a tap is then one line of neighbours, for
all rows of results together, so that vectors are full however short rows are. What a line has between two rows is not
stored.
"""

from __future__ import annotations

from typing import NamedTuple

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType, Min, PrimFunc, TensorType
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.product import multiply_add
from tirlite.kernels.operators.shapes import Extent, as_expr, extents, product
from tirlite.kernels.operators.window import Window, row_under

_COLUMNS = 512  # of results that are computed together, at most
_LINE = 2048  # elements of a line, about: all that lies under it fits into the first cache
_ROWS = 4  # in a line, where the width is known at a call alone
_LANES = 16  # a line ends with a whole vector


class Block(NamedTuple):
    """Rows and columns of results that are computed together, how far apart rows lie, and the elements of all.

    `beyond` are the rows and columns of a phase that taps look at beside those.
    """

    rows: Extent
    columns: Extent
    apart: Extent
    line: Extent
    beyond: tuple[Extent, Extent]

    @classmethod
    def of(cls, window: Window) -> Block:
        """Of the last two axes of a window. Rows are spread evenly over blocks."""
        rows, columns = window.places[-2:]
        below, aside = (
            (size - 1) * dilation // stride
            for size, dilation, stride in zip(window.size[-2:], window.dilations[-2:], window.strides[-2:], strict=True)
        )
        columns = min(columns, _COLUMNS) if isinstance(columns, int) else Min(columns, as_expr(_COLUMNS))
        apart = columns + aside
        most = max(1, _LINE // apart) if isinstance(apart, int) else _ROWS
        if isinstance(rows, int):
            most = -(-rows // -(-rows // most)) if rows else 1
        line = ((most - 1) * apart + columns + _LANES - 1) // _LANES * _LANES
        return cls(most, columns, apart, line, (below, aside))

    @property
    def held(self) -> Extent:
        """The elements of one phase that taps may look at."""
        return self.line + self.beyond[0] * self.apart + self.beyond[1]


def depthwise(types: tuple[TensorType | None, ...], window: Window, groups: int) -> PrimFunc:
    """The convolution of image, weights of one channel each, and bias if there is one, to the result."""
    X, W, B, Y = types
    kind, outputs = computed_in(X.dtype), extents(W)[0] // groups
    store = _plain if B is None else _biased(kind, groups)
    window = window if len(window.size) > 1 else window.with_one_row()
    sweep = _sweep(window, Block.of(window), kind, extents(X)[0] * groups, (groups, outputs), store)

    if B is None:

        @tl.kernel
        def conv(x: X, w: W, y: tl.out[Y]):
            sweep(x, w, x, y)

    else:

        @tl.kernel
        def conv(x: X, w: W, b: B, y: tl.out[Y]):
            biases = tl.view(b, b.dtype[groups, outputs])
            sweep(x, w, biases, y)

    return conv.ir


def _sweep(
    window: Window, block: Block, kind: DType, planes: Extent, weights: tuple[int, int], store: Inline
) -> Inline:
    """`sweep(x, w, bias, y)` stores all results by `store`, those of a block together, in parallel."""
    groups, outputs = weights
    deep, (height, width) = product(window.inputs[:-2]), window.inputs[-2:]
    outer, (rows, columns) = product(window.places[:-2]), window.places[-2:]
    layers, (down, across) = product(window.size[:-2]), window.size[-2:]
    (row_step, step), (row_gap, gap) = window.strides[-2:], window.dilations[-2:]
    fill, under, last = _fill(window, block, kind), row_under(window.without_last()), len(window.size) - 3
    high, wide, apart, line, lines = block.rows, block.columns, block.apart, block.line, block.held
    bands, parts, add = (rows + high - 1) // high, (columns + wide - 1) // wide, multiply_add(kind)

    @tl.inline
    def sweep(x, w, bias, y):
        images = tl.view(x, x.dtype[planes, deep, height, width])
        factors = tl.view(w, w.dtype[groups, outputs, layers, down, across])
        results = tl.view(y, y.dtype[planes, outputs, outer, rows, columns])
        for piece in tl.parallel(planes * outer * bands * parts):
            t = piece // (outer * bands * parts)
            place = piece // (bands * parts) % outer
            row = piece // parts % bands * high
            column = piece % parts * wide
            held = tl.alloc(kind[layers, row_step, step, lines])
            for d in range(layers):
                # No plane is behind the last; the bound says so where that is not seen.
                fill(held, images, t, min(under(place, d, tl.static(last)), deep - 1), d, row, column)
            for o in range(outputs):
                sums = tl.alloc(kind[line])
                for q in range(line):
                    total = kind(0)
                    for d in range(layers):
                        for r in range(down):
                            for p in range(across):
                                at = q + r * row_gap // row_step * apart + p * gap // step
                                factor = kind(factors[t % groups, o, d, r, p])
                                total = add(factor, held[d, r * row_gap % row_step, p * gap % step, at], total)
                    sums[q] = total
                for i in range(min(high, rows - row)):
                    for j in range(min(wide, columns - column)):
                        store(results, t, o, place, row + i, column + j, sums[i * apart + j], bias)

    return sweep


def _fill(window: Window, block: Block, kind: DType) -> Inline:
    """`fill(held, x, t, plane, d, row, column)`: what lies under a block in a plane, or zeros where that is -1."""
    (height, width), (row_step, step), (above, left) = window.inputs[-2:], window.strides[-2:], window.before[-2:]
    copied, apart, lines = block.rows + block.beyond[0], block.apart, block.held

    @tl.inline
    def fill(held, x, t, plane, d, row, column):
        for a in range(row_step):
            for r in range(copied):
                u = (row + r) * row_step + a - above
                if plane >= 0 and u >= 0 and u < height:
                    for b in range(step):
                        for v in range(apart):
                            at = (column + v) * step + b - left
                            held[d, a, b, r * apart + v] = (
                                kind(x[t, plane, u, at]) if at >= 0 and at < width else kind(0)
                            )
                else:
                    for b in range(step):
                        for v in range(apart):
                            held[d, a, b, r * apart + v] = kind(0)
            for b in range(step):
                for v in range(copied * apart, lines):
                    held[d, a, b, v] = kind(0)

    return fill


def _biased(kind: DType, groups: int) -> Inline:
    @tl.inline
    def store(y, t, o, place, i, j, total, bias):
        y[t, o, place, i, j] = y.dtype(total + kind(bias[t % groups, o]))

    return store


@tl.inline
def _plain(y, t, o, place, i, j, total, bias):
    y[t, o, place, i, j] = y.dtype(total)
