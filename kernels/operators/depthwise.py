"""Depthwise convolutions: each output sees one channel, so that there is nothing for products of matrices to share."""

from __future__ import annotations

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType, PrimFunc, TensorType
from tirlite.kernels.operators.bands import by_bands
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.product import multiply_add
from tirlite.kernels.operators.shapes import extents, product
from tirlite.kernels.operators.window import Window


def depthwise(types: tuple[TensorType | None, ...], window: Window, groups: int) -> PrimFunc:
    """The convolution of image, weights of one channel each, and bias if there is one, to the result."""
    X, W, B, Y = types
    kind = computed_in(X.dtype)
    add, store = multiply_add(kind), _biased(kind, groups) if B is not None else _plain
    rows, taps, stride, dilation = product(window.size[:-1]), window.size[-1], window.strides[-1], window.dilations[-1]
    planes, outputs = extents(X)[0] * groups, extents(W)[0] // groups
    outer, places = product(window.places[:-1]), window.places[-1]

    @tl.inline
    def each(band, t, i, first, count, w, bias, y):
        for o in range(outputs):
            for q in range(count):
                total = kind(0)
                for r in range(rows):
                    for p in range(taps):
                        factor = kind(w[t % groups, o, r, p])
                        total = add(factor, band[r, q * stride + p * dilation], total)
                store(y, t, o, i, first + q, total, bias)

    sweep = by_bands(window, kind, 0, planes, each)

    @tl.inline
    def convolve(x, w, bias, y):
        factors = tl.view(w, w.dtype[groups, outputs, rows, taps])
        results = tl.view(y, y.dtype[planes, outputs, outer, places])
        sweep(x, factors, bias, results)

    if B is None:

        @tl.kernel
        def conv(x: X, w: W, y: tl.out[Y]):
            convolve(x, w, x, y)

    else:

        @tl.kernel
        def conv(x: X, w: W, b: B, y: tl.out[Y]):
            biases = tl.view(b, b.dtype[groups, outputs])
            convolve(x, w, biases, y)

    return conv.ir


def _biased(kind: DType, groups: int) -> Inline:
    @tl.inline
    def store(y, t, o, i, j, total, bias):
        y[t, o, i, j] = y.dtype(total + kind(bias[t % groups, o]))

    return store


@tl.inline
def _plain(y, t, o, i, j, total, bias):
    y[t, o, i, j] = y.dtype(total)
