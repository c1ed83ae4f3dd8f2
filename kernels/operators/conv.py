"""Convolutions over any number of spatial axes, with groups, strides, dilations and padding, and their transposes.

Where the window is a single element they are products of matrices, of the channels as they lie. Each phase of a
transpose is a convolution of its own. Where the window is a multiple of the step along each axis, the places of each
phase have as many taps, over neighbours in the image. So one nest does for all phases: it goes over lines as other
convolutions do, and stores places apart.
"""

from __future__ import annotations

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType, PrimFunc, TensorType
from tirlite.kernels.operators.convolution import Block, adding, convolution, filling, left_of, pays, spread, storing
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.matmul import plain
from tirlite.kernels.operators.multiplication import multiplication
from tirlite.kernels.operators.shapes import Extent, extents, product
from tirlite.kernels.operators.window import Window
from tirlite.kernels.operators.windowed import axes_under, phases_from, windowed


@factory
def conv(
    X: TensorType,
    W: TensorType,
    B: TensorType | None,
    Y: TensorType,
    *,
    strides: tuple[int, ...],
    pads: tuple[int, ...],
    dilations: tuple[int, ...],
    groups: int = 1,
) -> PrimFunc:
    """y[n, o, i] = sum of x[n, c, i * strides - pads + p * dilations] * w[o, c, p] over c and p, plus b[o].

    x has the axes batch, channel and spatial ones, w outputs, inputs of a group and the window. `pads` are those before
    each axis, then those behind each. Channels of input and output fall into `groups` that stand apart.
    """
    (_, _, *inputs), (_, _, *size), (_, _, *places) = map(extents, (X, W, Y))
    window = Window(*map(tuple, (inputs, places, size, strides, pads[: len(size)], dilations)))
    outputs, taken = extents(W)[0] // groups, extents(W)[1]
    if not window.is_point:
        if pays(window, taken, outputs):
            return convolution((X, W, B, Y), window, groups)
        return windowed("conv", (X, W, B, Y), [axes_under(window)], groups, transposed=False)
    convolve = _pointwise(X, W, window, groups, B is not None)
    return _function("conv", (X, W, B, Y), window, groups, (groups, outputs, taken), convolve)


@factory
def conv_transpose(
    X: TensorType,
    W: TensorType,
    B: TensorType | None,
    Y: TensorType,
    *,
    strides: tuple[int, ...],
    pads: tuple[int, ...],
    dilations: tuple[int, ...],
    groups: int = 1,
    output_padding: tuple[int, ...] = (),
) -> PrimFunc:
    """The transpose of the convolution with these attributes: each element of x is spread over a window of y.

    w has the axes inputs, outputs of a group, and the window. `output_padding` is in the extents of y already.
    """
    (_, _, *inputs), (_, _, *size), (_, _, *places) = map(extents, (X, W, Y))
    window = Window(*map(tuple, (inputs, places, size, strides, pads[: len(size)], dilations)))
    if has_like_phases(window):
        return transposed((X, W, B, Y), window, groups)
    return windowed("conv_transpose", (X, W, B, Y), [*phases_from(window)], groups, transposed=True)


def _function(
    name: str,
    types: tuple[TensorType | None, ...],
    window: Window,
    groups: int,
    weights: tuple[object, ...],
    convolve: Inline,
) -> PrimFunc:
    """The function with or without a bias; `convolve` sees batches and groups as one axis, and spatial axes as one."""
    X, W, B, Y = types
    pieces, taken, outputs = extents(X)[0] * groups, extents(X)[1] // groups, extents(Y)[1] // groups
    elements, places = product(window.inputs), product(window.places)

    @tl.inline
    def grouped(x, w, bias, y):
        images = tl.view(x, x.dtype[pieces, taken, elements])
        factors = tl.view(w, w.dtype[weights[0], weights[1], weights[2]])
        results = tl.view(y, y.dtype[pieces, outputs, places])
        convolve(images, factors, bias, results)

    if B is None:

        @tl.kernel
        def conv(x: X, w: W, y: tl.out[Y]):
            grouped(x, w, x, y)

    else:

        @tl.kernel
        def conv(x: X, w: W, b: B, y: tl.out[Y]):
            biases = tl.view(b, b.dtype[groups, outputs])
            grouped(x, w, biases, y)

    return conv.ir.replaced(name=name)


def _store(kind: DType, groups: int, has_bias: bool) -> Inline:
    @tl.inline
    def store(y, t, o, place, total, bias):
        y[t, o, place] = y.dtype(total + kind(bias[t % groups, o]))

    return store if has_bias else plain


def _pointwise(X: TensorType, W: TensorType, window: Window, groups: int, has_bias: bool) -> Inline:
    """Where the window is a single element: the channels as they lie are the right operand."""
    places = product(window.places)

    @tl.inline
    def group(t):
        return t % groups

    @tl.inline
    def same(t):
        return t

    shape = (extents(X)[0] * groups, extents(W)[0] // groups, extents(W)[1], places)
    multiply = multiplication(X.dtype, shape, _store(computed_in(X.dtype), groups, has_bias), group, same)

    @tl.inline
    def convolve(x, w, bias, y):
        multiply(w, x, y, bias)

    return convolve


def has_like_phases(window: Window) -> bool:
    """Whether all phases have as many taps over neighbours, along one axis or two of known extents."""
    every = (*window.inputs, *window.places, *window.size, *window.before)
    known = all(isinstance(each, int) for each in every) and all(window.places)
    alike = all(
        isinstance(size, int) and size % stride == 0 for size, stride in zip(window.size, window.strides, strict=True)
    )
    return len(window.size) <= 2 and known and alike and set(window.dilations) == {1}


def transposed(types: tuple[TensorType | None, ...], window: Window, groups: int) -> PrimFunc:
    """The transpose of the convolution over a window of like phases."""
    X, W, B, Y = types
    kind, window = computed_in(X.dtype), window if len(window.size) > 1 else window.with_one_row()
    taken, outputs = extents(X)[1] // groups, extents(W)[1]
    sweep = _sweep(
        window, kind, extents(X)[0] * groups, (groups, outputs, taken), storing(kind, groups, has_bias=B is not None)
    )

    if B is None:

        @tl.kernel
        def conv_transpose(x: X, w: W, y: tl.out[Y]):
            sweep(x, w, x, y)

    else:

        @tl.kernel
        def conv_transpose(x: X, w: W, b: B, y: tl.out[Y]):
            biases = tl.view(b, b.dtype[groups, outputs])
            sweep(x, w, biases, y)

    return conv_transpose.ir


def _of_phase(window: Window) -> Window:
    """What a phase looks at: places that lie `strides` apart, as neighbours, from where its taps begin."""
    steps = [*zip(window.places, window.size, window.strides, strict=True)]
    return Window(
        window.inputs,
        tuple(-(-places // stride) for places, _, stride in steps),
        tuple(size // stride for _, size, stride in steps),
        (1, 1),
        tuple(size // stride - 1 for _, size, stride in steps),
        (1, 1),
    )


def _sweep(
    window: Window, kind: DType, planes: Extent, weights: tuple[Extent, Extent, Extent], store: Inline
) -> Inline:
    """`sweep(x, w, bias, y)` stores all results by `store`, those of a block of a phase together, in parallel."""
    (groups, outputs, taken), phase = weights, _of_phase(window)
    (height, width), (down, across), (rows, columns) = window.inputs, window.size, window.places
    (row_step, step), (above, before) = window.strides, window.before
    block = Block.of(phase, taken, by_rows=False)
    high, wide, apart, line, lines = block.rows, block.columns, block.apart, block.line, block.held
    bands, parts = -(-phase.places[0] // high), -(-phase.places[1] // wide)
    pieces = row_step * step * bands * parts
    together, shares, runs = spread(outputs, planes * pieces)
    fill, outputs_left = filling(phase, block, kind, whole=False), left_of(together, outputs)
    rows_left, columns_left = _left(high, rows, row_step), _left(wide, columns, step)
    down_each, across_each = phase.size

    @tl.inline
    def weight(w, g, first, k, c, d, r, p, near, aside):
        return w[g, c, min(first + k, outputs - 1), down_each - 1 - r, near, across_each - 1 - p, aside]

    add_up = adding(phase, block, kind, (together, outputs, taken), weight)

    @tl.inline
    def sweep(x, w, bias, y):
        images = tl.view(x, x.dtype[planes, taken, 1, height, width])
        factors = tl.view(w, w.dtype[groups, taken, outputs, down // row_step, row_step, across // step, step])
        results = tl.view(y, y.dtype[planes, outputs, 1, rows, columns])
        with tl.allow("contract"):
            for piece in tl.parallel(planes * pieces * shares):
                t = piece // (pieces * shares)
                share = piece % shares
                column = piece // shares % parts * wide
                row = piece // (shares * parts) % bands * high
                phase_j = piece // (shares * parts * bands) % step
                phase_i = piece // (shares * parts * bands * step) % row_step
                near, aside = (phase_i + above) % row_step, (phase_j + before) % step
                top, start = row + (phase_i + above) // row_step, column + (phase_j + before) // step
                held = tl.alloc(kind[taken, 1, 1, 1, lines])
                for c in range(taken):
                    fill(held, images, 0, t, c, 0, 0, top, start)
                for run in range(runs):
                    first = (share * runs + run) * together
                    sums = tl.alloc(kind[together, line])
                    add_up(sums, held, factors, t % groups, first, near, aside)
                    for k in range(outputs_left(first)):
                        for i in range(rows_left(row, phase_i)):
                            for j in range(columns_left(column, phase_j)):
                                y_row, y_column = (row + i) * row_step + phase_i, (column + j) * step + phase_j
                                store(results, t, first + k, 0, y_row, y_column, sums[k, i * apart + j], bias)

    return sweep


def _left(most: int, count: int, step: int) -> Inline:
    """`left(first, phase)`: how many of at most so many places of a phase are left of all."""
    known = left_of(most, count // step)

    @tl.inline
    def left(first, phase):
        if tl.static(count % step == 0):
            return known(first)
        else:
            return min(most, (count - phase + step - 1) // step - first)

    return left
