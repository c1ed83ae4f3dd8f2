"""Convolutions and matrix products of small integers with constant weights.

Weights are given minus their zero point, the other operand as it is: its zero point adds the same number to all sums of
an output, which the bias corrects. So bytes are multiplied directly, by the processor's dot products. Depthwise
convolutions, for which there are no dot products, are summed in f32. That is exact, as their sums stay below 2^24.
"""

from __future__ import annotations

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType, PrimFunc, TensorType, f32, i32
from tirlite.kernels.operators.convolution import OutTile, holding, left_of, spread, storing, sweeping
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.matmul import Product
from tirlite.kernels.operators.multiplication import multiplication, over_points
from tirlite.kernels.operators.shapes import Extent, extents, product
from tirlite.kernels.operators.window import Moves, Window, leaves_out, picking

_OUTPUTS = 128  # the most outputs whose sums are held together
_MANY_PIECES = 8  # any number of pieces from this on balances; an odd smaller one is doubled by halving the outputs


@factory
def conv_bytes(
    X: TensorType,
    Z: TensorType,
    W: TensorType,
    B: TensorType,
    Y: TensorType,
    *,
    groups: int = 1,
    **moves: Unpack[Moves],
) -> PrimFunc:
    """y[n, o, i] = sum of x[n, c, i * strides - pads + p * dilations] * w[o, p, c] over c and p, plus b[o].

    x is padded with z. The axes of w are the outputs, the window, and the inputs of a group, perhaps padded with zeros.
    Depthwise convolutions have w and y of f32.
    """
    (batches, taken, *inputs), (_, _, *places) = map(extents, (X, Y))
    rows, *size, terms = extents(W)
    outputs, channels = rows // groups, taken // groups
    window = Window.of(inputs, places, size, **moves)
    planes, weights = batches * groups, (groups, outputs, terms)
    if window.is_point:
        sweep = _within(over_points(window, i32, planes, weights, has_bias=True))
    else:
        window = window if len(size) > 1 else window.with_one_row()
        if W.dtype.is_float:
            sweep = sweeping(window, f32, planes, weights, storing(f32, groups, has_bias=True), X.dtype)
        elif leaves_out(window, moves["pads"]):
            sweep = _picked(window, X.dtype, planes, weights)
        else:
            sweep = _sweep(window, X.dtype, planes, channels, weights)

    @tl.kernel
    def conv_bytes(x: X, z: Z, w: W, b: B, y: tl.out[Y]):
        beyond = tl.view(z, z.dtype[1])
        offsets = tl.view(b, b.dtype[groups, outputs])
        sweep(x, beyond[0], w, offsets, y)

    return conv_bytes.ir


@factory
def matmul_bytes(A: TensorType, W: TensorType, B: TensorType, Y: TensorType) -> PrimFunc:
    """y = a @ w + b of integers in i32, which broadcast as in `matmul`; b has one number per column."""
    form = Product.of(A, W, Y)
    (batches, n, terms, m), count_a, count_w = form.shape, form.count_a, form.count_b

    @tl.inline
    def store(y, t, i, j, total, offsets):
        y[t, i, j] = total + offsets[j]

    multiply = multiplication(i32, form.shape, store, form.index_a, form.index_b)

    @tl.kernel
    def matmul_bytes(a: A, w: W, b: B, y: tl.out[Y]):
        rows = tl.view(a, a.dtype[count_a, n, terms])
        columns = tl.view(w, w.dtype[count_w, terms, m])
        results = tl.view(y, tl.i32[batches, n, m])
        multiply(rows, columns, results, b)

    return matmul_bytes.ir


@factory
def matmul_bits(A: TensorType, W: TensorType, S: TensorType, Z: TensorType, Y: TensorType, *, width: int) -> PrimFunc:
    """y = a @ b, where b = (w - z) * s with s and z per block of terms and column; w is packed into panels of columns.

    A byte of w holds the `width`-bit integers of neighbouring terms, the first in the lowest bits.
    """
    (panels, blocks, lines, size), rows, each = extents(W), product(extents(A)[:-1]), 8 // width

    @tl.inline
    def sum_up(a, w, z, u, i, g, j):
        total, zero = f32(0), z[u, g, j]
        for p in range(lines):
            packed = i32(w[u, g, p, j])
            for r in tl.static(range(each)):
                total += a[i, g, p, r] * (f32((packed >> tl.static(r * width)) & tl.static((1 << width) - 1)) - zero)
        return total

    @tl.kernel
    def matmul_bits(a: A, w: W, s: S, z: Z, y: tl.out[Y]):
        terms = tl.view(a, f32[rows, blocks, lines, each])
        results = tl.view(y, f32[rows, panels, size])
        with tl.allow("contract"):
            for u in tl.parallel(panels):
                for i in range(rows):
                    for j in range(size):
                        total = f32(0)
                        for g in range(blocks):
                            total += sum_up(terms, w, z, u, i, g, j) * s[u, g, j]
                        results[i, u, j] = total

    return matmul_bits.ir


def _within(sweep: Inline) -> Inline:
    """`sweep(x, beyond, w, offsets, y)` of a convolution without padding."""

    @tl.inline
    def swept(x, beyond, w, offsets, y):
        sweep(x, w, offsets, y)

    return swept


def _picked(window: Window, kind: DType, planes: Extent, weights: tuple[Extent, Extent, Extent]) -> Inline:
    """`sweep` of a 1 x 1 convolution with strides: first copies the elements that are read from each plane."""
    (groups, outputs, taken), elements, places = weights, product(window.inputs), product(window.places)
    pick = picking(window)

    @tl.inline
    def sweep(x, beyond, w, offsets, y):
        images = tl.view(x, kind[planes, taken, elements])
        factors = tl.view(w, w.dtype[groups, outputs, taken])
        results = tl.view(y, tl.i32[planes, outputs, places])
        for t in range(planes):
            picked = tl.alloc(kind[taken, places])
            pick(picked, images, t)
            for o in range(outputs):
                for i in range(places):
                    total = tl.i32(0)
                    for c in tl.reduce(taken):
                        total += tl.i32(factors[t % groups, o, c]) * tl.i32(picked[c, i])
                    results[t, o, i] = total + offsets[t % groups, o]

    return sweep


def _sweep(
    window: Window, kind: DType, planes: Extent, channels: Extent, weights: tuple[Extent, Extent, Extent]
) -> Inline:
    """`sweep(x, beyond, w, offsets, y)` of several channels, over copies of some rows of each channel.

    Weights may be padded with channels of 0 to whole groups of a dot product; the copied rows of these are 0 too.
    """
    (groups, outputs, all_taken), taken = weights, channels
    block = OutTile.of(window, all_taken, by_rows=False, each=kind.bytes)
    deep, (height, width) = product(window.inputs[:-2]), window.inputs[-2:]
    outer, (rows, columns) = product(window.places[:-2]), window.places[-2:]
    layers, (down, across) = product(window.size[:-2]), window.size[-2:]
    high, wide, lines, (row_phases, phases) = block.rows, block.columns, block.held, window.phases[-2:]
    bands, parts = (rows + high - 1) // high, (columns + wide - 1) // wide
    count = planes * outer * bands * parts
    is_odd = isinstance(count, int) and isinstance(outputs, int) and count < _MANY_PIECES and count % 2 == 1
    together, shares, runs = spread(outputs, count, min(_OUTPUTS, (outputs + 1) // 2) if is_odd else _OUTPUTS)
    if is_odd and shares == 1:
        shares, runs = runs, 1
    hold = holding(window, block, kind, taken, kind if window.strides[-1] > 1 else None)
    pieces, size = outer * bands * parts * shares, layers * row_phases * phases * lines
    compute = _sums_of(window, block, weights, (together, runs))

    @tl.inline
    def sweep(x, beyond, w, offsets, y):
        images = tl.view(x, x.dtype[planes, taken, deep, height, width])
        factors = tl.view(w, w.dtype[groups, outputs, layers, down, across, all_taken])
        results = tl.view(y, tl.i32[planes, outputs, outer, rows, columns])
        for piece in tl.parallel(planes * pieces):
            t = piece // pieces
            share, place = piece % shares, piece // (bands * parts * shares) % outer
            row, column = piece // (parts * shares) % bands * high, piece // shares % parts * wide
            held = tl.alloc(kind[all_taken, layers, row_phases, phases, lines])
            hold(held, images, beyond, t, place, row, column)
            whole = tl.view(held, kind[all_taken * size])
            for v in range(taken * size, all_taken * size):
                whole[v] = kind(0)
            compute(results, held, factors, offsets, t, share, place, row, column)

    return sweep


def _sums_of(
    window: Window, block: OutTile, weights: tuple[Extent, Extent, Extent], run: tuple[Extent, Extent]
) -> Inline:
    """`compute(y, held, w, offsets, t, share, place, row, column)`: `runs` runs of `together` outputs, by lines."""
    (groups, outputs, taken), (together, runs) = weights, run
    high, apart, line, (rows, columns) = block.rows, block.apart, block.line, window.places[-2:]
    layers, (down, across) = product(window.size[:-2]), window.size[-2:]
    (row_step, step), (row_gap, gap) = window.strides[-2:], window.dilations[-2:]
    columns_left, store = left_of(block.columns, columns), storing(i32, groups, has_bias=True)

    @tl.inline
    def under(held, c, d, r, p, q):
        at = q + r * row_gap // row_step * apart + p * gap // step
        return held[c, d, r * row_gap % row_step, p * gap % step, at]

    @tl.inline
    def output(o):
        return o if tl.static(isinstance(outputs, int)) else max(0, min(o, outputs - 1))

    @tl.inline
    def compute(y, held, w, offsets, t, share, place, row, column):
        for run in range(runs):
            # If fewer outputs are left, the last run overlaps the one before.
            wanted = (share * runs + run) * together
            first = max(0, min(wanted, outputs - together))
            sums = tl.alloc(tl.i32[together, line])
            for k in range(together):
                for q in range(line):
                    total = tl.i32(0)
                    for d in range(layers):
                        for r in range(down):
                            for p in range(across):
                                for c in range(taken):
                                    total += tl.i32(w[t % groups, output(first + k), d, r, p, c]) * tl.i32(
                                        under(held, c, d, r, p, q)
                                    )
                    sums[k, q] = total
            for k in range(wanted - first, min(together, outputs - first)):
                for i in range(min(high, rows - row)):
                    for j in tl.parallel(columns_left(column)):
                        store(y, t, first + k, place, row + i, column + j, sums[k, i * apart + j], offsets)

    return compute
