"""Convolutions over a copy of some rows of each channel, with the padding around them.

The copied rows are contiguous, separated by their phase: with strides of two the even columns come before the odd ones,
and even rows before odd ones. So the elements under a tap are one contiguous line for all rows of results together, and
a sum over channels and taps is a product of matrices: no element is copied for each tap that uses it, and vectors are
full however short rows are. Results for the gaps between two rows of a line are computed, and not stored.
"""

from __future__ import annotations

from typing import NamedTuple

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType, Min, PrimFunc, TensorType
from tirlite.kernels.operators.depthwise import by_lines, by_registers, goes_by_lines, goes_by_registers
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import with_given
from tirlite.kernels.operators.shapes import Extent, as_expr, extents, is_same, product
from tirlite.kernels.operators.window import Window, row_under

_COLUMNS = 512  # the most columns of results that are computed together
_LINE = 512  # about the elements of a line that are prefetched while others are summed
_HELD = 1 << 17  # about the bytes of all lines that stay in the L2 cache besides weights and sums
_ROWS = 4  # rows of a line if the width is only known at calls; rows computed together for one channel
_LANES = 16  # a line is padded to whole vectors of this many lanes
_MOST_APART = 4  # the greatest column stride at which vectors gather from a row
_LEAST = 8  # the fewest columns for which a row has its own vectors
_OUTPUTS = 16  # the most output channels that are summed together
_PIECES = 4  # the fewest pieces for workers
# Copying a panel takes as long as summing `_COPY` outputs; with unknown sizes, it pays from `_FEW_OUTPUTS` on.
_COPY, _FEW_OUTPUTS = 14, 64
_MANY_TAPS = 32  # over one channel, as in spectra: 0.44 to 0.87 of the time; of ten taps for 512 outputs 1.14

Types = tuple[TensorType, TensorType, TensorType | None, TensorType]  # of image, weights, bias and result


class OutTile(NamedTuple):
    """A block of results that are computed together.

    rows, columns: the extents of the block.
    apart: the distance between two rows in a line.
    line: the elements of a line over all rows, or over the rows if `by_rows`.
    beyond: the further rows and columns of a phase that taps read.
    by_rows: compute row by row, instead of one line over all rows.
    """

    rows: Extent
    columns: Extent
    apart: Extent
    line: Extent
    beyond: tuple[Extent, Extent]
    by_rows: bool

    @classmethod
    def of(cls, window: Window, channels: Extent, *, by_rows: bool, each: int = 4) -> OutTile:
        """The cheapest block of the window's last two axes, for this many channels and `each` bytes per element."""
        rows, columns = window.places[-2:]
        below, aside = (
            (size - 1) * dilation // stride
            for size, dilation, stride in zip(window.size[-2:], window.dilations[-2:], window.strides[-2:], strict=True)
        )
        columns = _even(columns) if isinstance(columns, int) else Min(columns, as_expr(_COLUMNS))
        apart, beyond = columns + aside, (below, 0 if by_rows else aside)
        heights = _heights(rows)
        extents = [high * apart if by_rows else _line(high, columns, aside) for high in heights]
        made = [cls(high, columns, apart, line, beyond, by_rows) for high, line in zip(heights, extents, strict=True)]
        known = [each for each in made if isinstance(each.held, int)]
        lines = _lines(window, channels)
        if not known or not isinstance(rows, int) or not isinstance(lines, int):
            return made[0]
        return min(known, key=lambda block: block.cost(rows, lines * each))

    def cost(self, rows: int, lines: int) -> float:
        """The relative time of a block: grows with unused results, copied rows, and lines that exceed the cache.

        `lines` is the number of lines times the bytes of an element.
        """
        assert isinstance(self.rows, int)
        assert isinstance(self.columns, int)
        assert isinstance(self.line, int)
        assert isinstance(self.held, int)
        assert isinstance(self.beyond[0], int)
        # Rows of an incomplete group of `_ROWS` share no loads, and take twice as long.
        worked = self.line if not self.by_rows else (self.rows + self.rows % _ROWS) * self.columns
        computed = -(-rows // self.rows) * worked / (rows * self.columns)
        copied = self.beyond[0] / self.rows
        beyond = max(0.0, lines * self.held / _HELD - 1) + max(0.0, self.line / _LINE - 1)
        return computed + copied / 16 + min(beyond, 2) / 4

    @property
    def copied(self) -> Extent:
        """The rows of one phase that taps may read."""
        return self.rows + self.beyond[0]

    @property
    def held(self) -> Extent:
        """The elements of one phase that taps may read."""
        return self.line + self.beyond[0] * self.apart + self.beyond[1]


def _even(columns: int) -> int:
    """The columns of a block: the fewest blocks of about the same width, in whole vectors if there are several."""
    parts = -(-columns // _COLUMNS)
    return columns if parts <= 1 else -(-columns // (parts * _LANES)) * _LANES


def _lanes_of(columns: int, step: int) -> int:
    """The lanes of vectors that gather `columns` columns at stride `step` from a row; 1 if vectors do not pay."""
    return min(_LANES, 1 << columns.bit_length() - 1) if 1 < step <= _MOST_APART and columns > 1 else 1


def _lines(window: Window, channels: Extent) -> Extent:
    """The number of lines of a block: one per channel, layer of the window and phase."""
    return channels * product(window.size[:-2]) * product(window.phases[-2:])


def _heights(rows: Extent) -> list[int]:
    """The candidates for the rows of a block, each spreading all rows evenly over blocks."""
    return sorted({-(-rows // count) for count in range(1, rows + 1)}) or [1] if isinstance(rows, int) else [_ROWS]


def _line(rows: Extent, columns: Extent, aside: Extent) -> Extent:
    return ((rows - 1) * (columns + aside) + columns + _LANES - 1) // _LANES * _LANES


def pays(window: Window, channels: Extent, outputs: Extent) -> bool:
    """Whether this is faster than panels with a copy of the elements under each tap, made once for all outputs."""
    if isinstance(channels, int) and channels == 1:
        # At strides too large for gathering vectors, elements are copied one by one, for each share of the outputs.
        taps, is_apart = product(window.size), window.strides[-1] > _MOST_APART
        are_many = isinstance(taps, int) and taps >= _MANY_TAPS and isinstance(outputs, int) and outputs > _OUTPUTS
        return not (is_apart and are_many)
    window = window if len(window.size) > 1 else window.with_one_row()
    if not isinstance(outputs, int):
        return False
    block, places = OutTile.of(window, channels, by_rows=False), product(window.places)
    lines = _lines(window, channels)
    if not (isinstance(places, int) and isinstance(lines, int) and isinstance(window.places[-2], int)) or not places:
        return outputs <= _FEW_OUTPUTS
    panels = -(-places // _LANES) * _LANES / places * (1 + _COPY / outputs)
    return block.cost(window.places[-2], 4 * lines) <= panels


def convolution(types: Types, window: Window, groups: int, *, permutes: bool = False) -> PrimFunc:
    """The kernel of a convolution with an optional bias. `permutes`: the processor permutes lanes of two vectors."""
    X, W, B, _ = types
    kind, outputs = computed_in(X.dtype), extents(W)[0] // groups
    store = storing(kind, groups, has_bias=B is not None)
    window = window if len(window.size) > 1 else window.with_one_row()
    planes, taken = extents(X)[0] * groups, extents(W)[1]
    is_held = goes_by_registers(window, taken, outputs, permutes=permutes)
    if is_held and permutes and goes_by_lines(window):
        sweep = by_lines(window, kind, planes, groups, store)
    elif is_held:
        sweep = by_registers(window, kind, planes, groups, store, permutes=permutes)
    else:
        sweep = sweeping(window, kind, planes, (groups, outputs, taken), store)

    @tl.inline
    def within_zeros(x, w, biases, y):
        sweep(x, 0, w, biases, y)

    return with_bias("conv", types, (groups, outputs), within_zeros)


def with_bias(name: str, types: Types, shape: tuple[Extent, ...], sweep: Inline) -> PrimFunc:
    """The function with the body `sweep(x, w, biases, y)`; without a bias, the image is passed as an unused one."""
    X, W, B, Y = types
    given = B or X
    seen = given.dtype[shape]

    @tl.kernel
    def conv(x: X, w: W, b: given, y: tl.out[Y]):
        if tl.static(B is None):
            sweep(x, w, x, y)
        else:
            biases = tl.view(b, seen)
            sweep(x, w, biases, y)

    return with_given(conv, b=B).named(name)


def sweeping(
    window: Window,
    kind: DType,
    planes: Extent,
    weights: tuple[Extent, Extent, Extent],
    store: Inline,
    given: DType | None = None,
) -> Inline:
    """`sweep(x, beyond, w, bias, y)` computes all results, in parallel over blocks, and stores them by `store`.

    The padding is `beyond`. Rows are copied in the type `kind`. With the image's type as `given`, they are first copied
    unchanged, then converted and separated by column phases: so bytes are copied in whole vectors.
    """
    groups, outputs, taken = weights
    by_rows = _goes_by_rows(window, taken, outputs)
    block = OutTile.of(window, taken, by_rows=by_rows)
    deep, (height, width) = product(window.inputs[:-2]), window.inputs[-2:]
    outer, (rows, columns) = product(window.places[:-2]), window.places[-2:]
    layers, (down, across) = product(window.size[:-2]), window.size[-2:]
    hold = holding(window, block, kind, taken, given)
    high, wide, lines, (row_phases, phases) = block.rows, block.columns, block.held, window.phases[-2:]
    bands, parts = (rows + high - 1) // high, (columns + wide - 1) // wide
    together, shares, runs = spread(outputs, planes * outer * bands * parts)
    if by_rows:
        compute = _rows_of(window, block, kind, groups, store)
    else:
        compute = _lines_of(window, block, kind, weights, (together, runs), store)

    @tl.inline
    def sweep(x, beyond, w, bias, y):
        images = tl.view(x, x.dtype[planes, taken, deep, height, width])
        factors = tl.view(w, w.dtype[groups, outputs, taken, layers, down, across])
        results = tl.view(y, y.dtype[planes, outputs, outer, rows, columns])
        with tl.allow("contract"):
            for piece in tl.parallel(planes * outer * bands * parts * shares):
                t = piece // (outer * bands * parts * shares)
                place = piece // (bands * parts * shares) % outer
                row = piece // (parts * shares) % bands * high
                column = piece // shares % parts * wide
                share = piece % shares
                held = tl.alloc(kind[taken, layers, row_phases, phases, lines])
                hold(held, images, beyond, t, place, row, column)
                compute(results, held, factors, bias, t, share, place, row, column)

    return sweep


def holding(window: Window, block: OutTile, kind: DType, taken: Extent, given: DType | None = None) -> Inline:
    """`hold(held, images, beyond, t, place, row, column)` copies the inputs of a block, of all channels of plane t.

    With the image's type as `given`, rows are first copied unchanged, then converted and separated by column phases.
    """
    deep, lines, step = product(window.inputs[:-2]), block.held, window.strides[-1]
    row_phases, phases = window.phases[-2:]
    layers, last = product(window.size[:-2]), len(window.size) - 3
    under, whole = row_under(window.without_last()), is_same(block.columns, window.places[-1])
    fill = filling(window, block, kind, whole=whole)
    move = None if given is None else _moving(window, block, given, whole=whole)

    @tl.inline
    def fill_all(fill, held, images, beyond, t, c, place, row, column):
        for d in range(layers):
            # Never beyond the last plane; `min` states that bound for the compiler.
            plane = min(under(place, d, tl.static(last)), deep - 1)
            fill(held, images, beyond, t, c, plane, d, row, column)

    @tl.inline
    def hold(held, images, beyond, t, place, row, column):
        if tl.static(given is None):
            for c in range(taken):
                fill_all(fill, held, images, beyond, t, c, place, row, column)
        else:
            plain = tl.alloc(given[taken, layers, row_phases, 1, lines * step])
            for c in range(taken):
                fill_all(move, plain, images, beyond, t, c, place, row, column * step)
                for d in range(layers):
                    for a in range(row_phases):
                        for b in tl.static(range(phases)):
                            for v in range(lines):
                                held[c, d, a, b, v] = kind(plain[c, d, a, 0, v * step + b])

    return hold


def _goes_by_rows(window: Window, taken: Extent, outputs: Extent) -> bool:
    """Whether each output channel reads one input channel of its own, and rows fill vectors."""
    columns = window.places[-1]
    return (taken, outputs) == (1, 1) and not (isinstance(columns, int) and columns < _LEAST)


def _rows_of(window: Window, block: OutTile, kind: DType, groups: Extent, store: Inline) -> Inline:
    """`compute(y, held, w, bias, t, share, place, row, column)`: a block of results, row by row.

    Neighbouring rows share the loads of their taps.
    """
    rows_left, columns_left = left_of(block.rows, window.places[-2]), left_of(block.columns, window.places[-1])
    layers, (down, across) = product(window.size[:-2]), window.size[-2:]
    (row_step, step), (row_gap, gap) = window.strides[-2:], window.dilations[-2:]
    (row_phases, phases), copied, apart = window.phases[-2:], block.copied, block.apart

    @tl.inline
    def under(lines, d, r, p, i, j):
        return lines[d, r * row_gap % row_step, p * gap % step, i + r * row_gap // row_step, j + p * gap // step]

    @tl.inline
    def compute(y, held, w, bias, t, share, place, row, column):
        lines = tl.view(held, kind[layers, row_phases, phases, copied, apart])
        g = t % groups
        for i in range(rows_left(row)):
            for j in range(columns_left(column)):
                total = kind(0)
                for d in range(layers):
                    for r in range(down):
                        for p in range(across):
                            total += kind(w[g, 0, 0, d, r, p]) * under(lines, d, r, p, i, j)
                store(y, t, 0, place, row + i, column + j, total, bias)

    return compute


def _lines_of(
    window: Window,
    block: OutTile,
    kind: DType,
    weights: tuple[Extent, Extent, Extent],
    run: tuple[Extent, Extent],
    store: Inline,
) -> Inline:
    """`compute` as in `_rows_of`: `runs` runs of `together` outputs, for all places of a line at once."""
    (groups, outputs, taken), (together, runs) = weights, run
    high, wide, apart, line = block.rows, block.columns, block.apart, block.line
    rows, columns = window.places[-2:]

    @tl.inline
    def weight(w, g, first, k, c, d, r, p, near, aside):
        return w[g, min(first + k, outputs - 1), c, d, r, p]

    add_up = adding(window, block, kind, (together, outputs, taken), weight)
    columns_left = left_of(wide, columns)

    @tl.inline
    def compute(y, held, w, bias, t, share, place, row, column):
        for run in range(runs):
            first = (share * runs + run) * together
            sums = tl.alloc(kind[together, line])
            add_up(sums, held, w, t % groups, first, 0, 0)
            # Only the outputs that are left; with this bound, LLVM unrolls the columns and not the outputs.
            for k in range(min(together, outputs - first)):
                for i in range(min(high, rows - row)):
                    for j in range(columns_left(column)):
                        store(y, t, first + k, place, row + i, column + j, sums[k, i * apart + j], bias)

    return compute


def adding(
    window: Window, block: OutTile, kind: DType, channels: tuple[Extent, Extent, Extent], weight: Inline
) -> Inline:
    """`add_up(sums, held, w, g, first, near, aside)`: the sums of a group's outputs from `first` on, for a whole line.

    `weight(w, g, first, k, c, d, r, p, near, aside)` is the weight of the k-th output for an input and a tap; beyond
    the last output it may be any. `near` and `aside` are passed on to `weight` unchanged.
    """
    together, outputs, taken = channels
    layers, (down, across) = product(window.size[:-2]), window.size[-2:]
    (row_step, step), (row_gap, gap) = window.strides[-2:], window.dilations[-2:]
    apart, line = block.apart, block.line
    is_whole = taken == 1 and outputs == 1
    pair = 2 * _LANES  # each weight is loaded once for the sums of two vectors

    @tl.inline
    def add_some(sums, held, w, g, first, near, aside, start, lanes):
        for k in range(together):
            for q in range(lanes):
                total = kind(0)
                for c in range(taken):
                    for d in range(layers):
                        for r in range(down):
                            for p in range(across):
                                at = start + q + r * row_gap // row_step * apart + p * gap // step
                                value = held[c, d, r * row_gap % row_step, p * gap % step, at]
                                total += kind(weight(w, g, first, k, c, d, r, p, near, aside)) * value
                sums[k, start + q] = total

    @tl.inline
    def add_up(sums, held, w, g, first, near, aside):
        if tl.static(is_whole):
            add_some(sums, held, w, g, first, near, aside, 0, line)
        else:
            for part in range(line // pair):
                add_some(sums, held, w, g, first, near, aside, part * pair, pair)
            if line % pair > 0:
                add_some(sums, held, w, g, first, near, aside, line - _LANES, _LANES)

    return add_up


def spread(outputs: Extent, pieces: Extent, most: int = _OUTPUTS) -> tuple[Extent, Extent, Extent]:
    """The outputs that are summed together, the shares for workers, and the runs of each share."""
    if not isinstance(outputs, int):
        return most, 1, (outputs + most - 1) // most
    runs = -(-outputs // most)
    wanted = -(-_PIECES // max(1, pieces)) if isinstance(pieces, int) else 1
    # Shares divide the runs evenly, so that none is beyond the last output.
    shares = next((each for each in range(wanted, runs) if runs % each == 0), runs)
    return -(-outputs // runs), shares, runs // shares


def _moving(window: Window, block: OutTile, kind: DType, *, whole: bool) -> Inline:
    """As `filling`, with columns in the order of the image instead of by phases."""
    step = window.strides[-1]
    plain = window._replace(strides=(*window.strides[:-1], 1))
    wide = block._replace(
        apart=block.apart * step, line=block.line * step, beyond=(block.beyond[0], block.beyond[1] * step)
    )
    return filling(plain, wide, kind, whole=whole)


def filling(window: Window, block: OutTile, kind: DType, *, whole: bool) -> Inline:
    """`fill(held, x, beyond, t, c, plane, d, row, column)` copies the inputs of a block from a plane (-1: all padding).

    The padding is filled with `beyond`. A `whole` block is as wide as all results, so that its padding is known.
    """
    (height, width), (row_step, step), (above, left) = window.inputs[-2:], window.strides[-2:], window.before[-2:]
    (row_phases, phases), copied, apart, lines = window.phases[-2:], block.copied, block.apart, block.held
    # For each phase, the first column inside of the image, and the first one after it.
    first, behind = [0] * step, [0] * step
    is_known = whole and isinstance(width, int) and isinstance(left, int) and isinstance(apart, int)
    if is_known:
        first = [min(max(0, -((b - left) // step)), apart) for b in range(step)]
        behind = [max(each, min(-((b - left - width) // step), apart)) for b, each in enumerate(first)]
    pick = _picking(kind, apart, (step, left), first, behind)

    @tl.inline
    def clear(held, beyond, c, d, a, b, start, stop):
        for v in range(start, stop):
            held[c, d, a, b, v] = kind(beyond)

    @tl.inline
    def copy(held, x, beyond, t, c, plane, d, a, r, u, column):
        if tl.static(is_known):
            for b in tl.static(range(phases)):
                clear(held, beyond, c, d, a, b, r * apart, r * apart + tl.static(first[b]))
                pick(held, x, t, c, plane, d, a, b, r, u)
                clear(held, beyond, c, d, a, b, r * apart + tl.static(behind[b]), r * apart + apart)
        else:
            for b in range(phases):
                for v in range(apart):
                    at = (column + v) * step + b - left
                    inside = at >= 0 and at < width
                    held[c, d, a, b, r * apart + v] = kind(x[t, c, plane, u, at]) if inside else kind(beyond)

    @tl.inline
    def fill(held, x, beyond, t, c, plane, d, row, column):
        for a in range(row_phases):
            for r in range(copied):
                u = (row + r) * row_step + a - above
                if plane >= 0 and u >= 0 and u < height:
                    copy(held, x, beyond, t, c, plane, d, a, r, u, column)
                else:
                    for b in range(phases):
                        clear(held, beyond, c, d, a, b, r * apart, r * apart + apart)
            for b in range(phases):
                clear(held, beyond, c, d, a, b, copied * apart, lines)

    return fill


def left_of(most: Extent, count: Extent) -> Inline:
    """`left(first)`: the items of a block that begins at `first`, at most `most`; constant if all blocks are equal."""
    is_known = isinstance(most, int) and isinstance(count, int) and most > 0 and count % most == 0

    @tl.inline
    def left(first):
        if tl.static(is_known):
            return most
        else:
            return min(most, count - first)

    return left


def storing(kind: DType, groups: Extent, *, has_bias: bool) -> Inline:
    """`store(y, t, o, place, i, j, total, bias)` stores a sum, plus the bias if there is one."""

    @tl.inline
    def plain(y, t, o, place, i, j, total, bias):
        y[t, o, place, i, j] = y.dtype(total)

    @tl.inline
    def biased(y, t, o, place, i, j, total, bias):
        y[t, o, place, i, j] = y.dtype(total + kind(bias[t % groups, o]))

    return biased if has_bias else plain


def _picking(kind: DType, apart: Extent, under: tuple[int, Extent], first: list[int], behind: list[int]) -> Inline:
    """`pick(held, x, t, c, plane, d, a, b, r, u)` copies the columns of a phase from a row of the image.

    Strided columns are vectorized here: LLVM unrolls loops of few iterations, and then does not vectorize them.
    """
    step, left = under
    lanes = [_lanes_of(stop - start, step) for start, stop in zip(first, behind, strict=True)]

    @tl.inline
    def pick(held, x, t, c, plane, d, a, b, r, u):
        if tl.static(lanes[b] > 1):
            # The last vector ends with the last column, and overlaps the one before.
            for q in range(tl.static(-(-(behind[b] - first[b]) // lanes[b]))):
                start = min(tl.static(first[b]) + q * tl.static(lanes[b]), tl.static(behind[b] - lanes[b]))
                for v in tl.vectorized(tl.static(lanes[b])):
                    held[c, d, a, b, r * apart + start + v] = kind(x[t, c, plane, u, (start + v) * step + b - left])
        else:
            for v in range(tl.static(first[b]), tl.static(behind[b])):
                held[c, d, a, b, r * apart + v] = kind(x[t, c, plane, u, v * step + b - left])

    return pick
