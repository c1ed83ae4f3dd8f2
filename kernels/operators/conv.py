"""Convolutions over any number of spatial axes, with groups, strides, dilations and padding, and their transposes.

Where the window is a single element they are products of matrices, of the channels as they lie.
"""

from __future__ import annotations

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType, PrimFunc, TensorType
from tirlite.kernels.operators.convolution import convolution, pays
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.multiplication import multiplication
from tirlite.kernels.operators.product import plain
from tirlite.kernels.operators.shapes import extents, product
from tirlite.kernels.operators.transposed import has_like_phases, transposed
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
