"""Convolutions over any number of spatial axes, with groups, strides, dilations and padding, and their transposes.

With a window of a single element they are matrix products of the channels in place. Each phase of a transposed
convolution is a convolution of its own. If the window is a multiple of the stride along each axis, all phases have
equally many taps, over neighbours in the image. So one nest serves all phases: it goes over lines as other convolutions
do, and stores with a stride. Others of one or two axes are products, which are added where windows overlap (see
`overlap`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import reduce
from itertools import product as combinations
from math import gcd, prod
from typing import NamedTuple, Unpack

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import EQ, And, AttrKey, Buffer, Builder, Call, DType, Expr, Op, Permission, PrimFunc, TensorType, const
from tirlite.kernels.operators.convolution import (
    OutTile,
    Types,
    adding,
    convolution,
    filling,
    left_of,
    pays,
    spread,
    storing,
    with_bias,
)
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.multiplication import over_points
from tirlite.kernels.operators.overlap import overlapping, stand_apart
from tirlite.kernels.operators.shapes import Extent, as_expr, extents, nest, product, seen
from tirlite.kernels.operators.window import Moves, Window, leaves_out


@factory
def conv(
    X: TensorType, W: TensorType, B: TensorType | None, Y: TensorType, *, groups: int = 1, **moves: Unpack[Moves]
) -> PrimFunc:
    """y[n, o, i] = sum of x[n, c, i * strides - pads + p * dilations] * w[o, c, p] over c and p, plus b[o].

    x has the axes batch, channel and spatial ones, w outputs, inputs of a group and the window. `pads` are those before
    each axis, then those after each. Channels of input and output fall into `groups` that stand apart.
    """
    window = _window(X, W, Y, **moves)
    if window.is_point or (leaves_out(window, moves["pads"]) and _are_few(product(window.places), extents(W)[1])):
        return _pointwise((X, W, B, Y), window, groups)
    if pays(window, extents(W)[1], extents(W)[0] // groups):
        return convolution((X, W, B, Y), window, groups)
    return windowed("conv", (X, W, B, Y), [axes_under(window)], groups, transposed=False)


@factory
def conv_depthwise(
    X: TensorType, W: TensorType, B: TensorType | None, Y: TensorType, *, groups: int = 1, **moves: Unpack[Moves]
) -> PrimFunc:
    """The same, of one channel for each group, on processors that permute lanes."""
    window = _window(X, W, Y, **moves)
    return convolution((X, W, B, Y), window, groups, permutes=True)


@factory
def conv_transpose(
    X: TensorType, W: TensorType, B: TensorType | None, Y: TensorType, *, groups: int = 1, **moves: Unpack[Moves]
) -> PrimFunc:
    """The transpose of the convolution with these attributes: each element of x is spread over a window of y.

    w has the axes inputs, outputs of a group, and the window.
    """
    window = _window(X, W, Y, **moves)
    by_phases = has_like_phases(window) and not stand_apart(window)
    if by_phases and _pays(window, extents(X)[1] // groups, extents(W)[1]):
        return transposed((X, W, B, Y), window, groups)
    if len(window.size) <= 2 and all(1 in each for each in zip(window.strides, window.dilations, strict=True)):
        return overlapping((X, W, B, Y), window, groups)
    return windowed("conv_transpose", (X, W, B, Y), [*phases_from(window)], groups, transposed=True)


def _window(X: TensorType, W: TensorType, Y: TensorType, **moves: Unpack[Moves]) -> Window:
    """The window over the spatial axes of these tensors."""
    return Window.of(*(extents(each)[2:] for each in (X, Y, W)), **moves)


# Strided 1 x 1 convolutions of fewer places than `_PICKED` first copy the elements that they read: 14 x 14 to 28 x 28
# took 0.68 to 1.05 of the time, 0.84 in the middle, but 40 x 40 of few channels up to 1.5. From a quarter of that on,
# copies have at most `_COPIED` elements: larger ones would grow ResNet-50 by 401,408 bytes, for 0.98 of the time.
_PICKED, _COPIED = 1024, 1 << 17


def _are_few(places: Extent, channels: Extent) -> bool:
    """Whether a copy pays: for sums over several channels, few places, and a small copy."""
    if not isinstance(places, int) or not isinstance(channels, int) or channels == 1:
        return False
    return places < _PICKED and (4 * places < _PICKED or channels * places <= _COPIED)


def _pointwise(types: Types, window: Window, groups: int) -> PrimFunc:
    """The convolution by a window of a single element."""
    X, W, B, _ = types
    outputs, planes = extents(W)[0] // groups, extents(X)[0] * groups
    weights = groups, outputs, extents(W)[1]
    sweep = over_points(window, X.dtype, planes, weights, has_bias=B is not None)
    return with_bias("conv", types, (groups, outputs), sweep)


# Sums over phases pay for at most this many terms, and at least this many outputs.
_FEW_TERMS, _LEAST_OUTPUTS = 16, 4


def has_like_phases(window: Window) -> bool:
    """Whether all phases have equally many taps over neighbours, along one or two axes of known extents."""
    every = (*window.inputs, *window.places, *window.size, *window.before)
    known = all(isinstance(each, int) for each in every) and all(window.places)
    alike = all(
        isinstance(size, int) and size % stride == 0 for size, stride in zip(window.size, window.strides, strict=True)
    )
    return len(window.size) <= 2 and known and alike and set(window.dilations) == {1}


def _pays(window: Window, taken: Extent, outputs: Extent) -> bool:
    """Whether sums over phases are faster than products for each tap, which must be added.

    Sums beyond the image are wasted, and so are copies for few outputs.
    """
    places, inside = product(window.places), product((*window.inputs, *window.strides))
    if not isinstance(taken, int) or not isinstance(outputs, int):
        return False
    if not isinstance(places, int) or not isinstance(inside, int) or 2 * places >= 3 * inside:
        return False
    is_few = taken <= _FEW_TERMS or prod(window.strides) == 1
    return (taken, outputs) == (1, 1) or (is_few and outputs >= _LEAST_OUTPUTS)


def transposed(types: Types, window: Window, groups: int) -> PrimFunc:
    """The transpose of the convolution over a window of like phases."""
    X, W, B, _ = types
    kind, window = computed_in(X.dtype), window if len(window.size) > 1 else window.with_one_row()
    taken, outputs = extents(X)[1] // groups, extents(W)[1]
    sweep = _sweep(
        window, kind, extents(X)[0] * groups, (groups, outputs, taken), storing(kind, groups, has_bias=B is not None)
    )

    return with_bias("conv_transpose", types, (groups, outputs), sweep)


def _of_phase(window: Window) -> Window:
    """The window of a phase: places with a stride become neighbours, from the first tap on."""
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
    block = OutTile.of(phase, taken, by_rows=False)
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
    """`left(first, phase)`: how many places of a phase remain from `first` on, at most this many."""
    known = left_of(most, count // step)

    @tl.inline
    def left(first, phase):
        if tl.static(count % step == 0):
            return known(first)
        else:
            return min(most, (count - phase + step - 1) // step - first)

    return left


_MOST_PHASES = 16


class WindowAxis(NamedTuple):
    """Some places of the result along an axis, the taps that contribute there, and the elements that these read.

    The q-th place is `first + every * q`, the t-th tap `tap + tap_every * t`. The tap reads the element at
    `(stride * q + offset + dilation * t) / by`, if that is an integer and in range.
    """

    inputs: Extent
    count: Extent
    first: int
    every: int
    taps: Extent
    tap: int
    tap_every: int
    stride: int
    offset: Extent
    dilation: int
    by: int = 1

    def under(self, q: Expr, t: Expr) -> tuple[Expr, list[Expr]]:
        """The index of the element, and the conditions under which it exists."""
        at, holds = q * self.stride + self.offset + t * self.dilation, list[Expr]()
        if self.by > 1:
            at, holds = at // self.by, [EQ(at % self.by, as_expr(0))]
        return at, [*holds, at >= 0, at < as_expr(self.inputs)]


def axes_under(window: Window) -> tuple[WindowAxis, ...]:
    """The axes of a convolution."""
    return tuple(
        WindowAxis(inputs, places, 0, 1, size, 0, 1, stride, 0 - before, dilation)
        for inputs, places, size, stride, before, dilation in zip(*window, strict=True)
    )


def phases_from(window: Window) -> Iterator[tuple[WindowAxis, ...]]:
    """The axes of a transposed convolution for each of its phases; for all at once if these are unknown or many."""
    if prod(window.strides) > _MOST_PHASES or any(
        stride > 1 and not (isinstance(before, int) and isinstance(size, int))
        for _, _, size, stride, before, _ in zip(*window, strict=True)
    ):
        yield tuple(
            WindowAxis(inputs, places, 0, 1, size, 0, 1, 1, before, -dilation, stride)
            for inputs, places, size, stride, before, dilation in zip(*window, strict=True)
        )
        return
    yield from combinations(*(tuple(_phases(*axis)) for axis in zip(*window, strict=True)))


def _phases(
    inputs: Extent, places: Extent, size: Extent, stride: int, before: Extent, dilation: int
) -> Iterator[WindowAxis]:
    if stride == 1:
        yield WindowAxis(inputs, places, 0, 1, size, 0, 1, 1, before, -dilation)
        return
    assert isinstance(size, int)
    assert isinstance(before, int)
    every = stride // gcd(stride, dilation)
    for first in range(stride):
        taps = [tap for tap in range(size) if (first + before - tap * dilation) % stride == 0]
        tap = taps[0] if taps else 0
        offset = (first + before - tap * dilation) // stride
        count = (places - first + stride - 1) // stride
        yield WindowAxis(inputs, count, first, stride, len(taps), tap, every, 1, offset, -every * dilation // stride)


def windowed(
    name: str, types: Types, phases: Sequence[Sequence[WindowAxis]], groups: int, *, transposed: bool
) -> PrimFunc:
    """y[n, g, o, place] = sum over c and the taps of w[g, o, c, tap] * x[n, g, c, at], plus b[g, o].

    `at` is where an element lies under a tap; what lies outside of x is 0. `phases` have each place once. The weights
    of a transposed one are w[g, c, o, tap].
    """
    X, W, B, Y = types
    batches, taken, outputs = extents(X)[0], extents(X)[1] // groups, extents(Y)[1] // groups
    places = extents(Y)[2:] if len(phases) > 1 else (product(extents(Y)[2:]),)
    b = Builder(name)
    x, w = b.param("x", X), b.param("w", W)
    bias = None if B is None else b.param("b", B)
    y = b.param("y", Y, out=True)
    x = seen(b, x, (batches, groups, taken, *extents(X)[2:]))
    w = seen(b, w, (groups, *((taken, outputs) if transposed else (outputs, taken)), *extents(W)[2:]))
    y = seen(b, y, (batches, groups, outputs, *places))
    biases = None if bias is None else seen(b, bias, (groups, outputs))
    with b.attr(AttrKey.ALLOW, None, (Permission.CONTRACT,)):
        for axes in phases:
            # Places of a phase have a stride, so their rows are not contiguous.
            counts = [axis.count for axis in axes]
            box = counts if len(phases) > 1 else [product(counts)]
            with nest(b, (batches, groups, outputs, *box), serial=True) as (n, g, o, *at):
                coordinates = at if len(phases) > 1 else _coordinates(axes, at[0])
                total = _sum(b, axes, coordinates, taken, x, w, (n, g, o), transposed=transposed)
                if biases is not None:
                    total = total + biases[g, o].astype(total.dtype)
                if len(phases) > 1:
                    at = [axis.first + axis.every * q for axis, q in zip(axes, coordinates, strict=True)]
                b.store(y, (n, g, o, *at), total)
    return b.build()


def _sum(
    b: Builder,
    axes: Sequence[WindowAxis],
    places: Sequence[Expr],
    taken: Extent,
    x: Buffer,
    w: Buffer,
    element: tuple[Expr, Expr, Expr],
    *,
    transposed: bool,
) -> Expr:
    """The sum of an element of the result, in a scalar."""
    (n, g, o), kind = element, computed_in(x.dtype)
    total = b.alloc("total", TensorType(kind, ()), scope="local")
    b.store(total, (), 0)
    with ExitStack() as loops:
        terms = {"c": taken, **{f"p{k}": axis.taps for k, axis in enumerate(axes)}}
        c, *steps = (loops.enter_context(b.reduce(term, 0, extent)) for term, extent in terms.items())
        found = [axis.under(q, t) for axis, q, t in zip(axes, places, steps, strict=True)]
        taps = [axis.tap + axis.tap_every * t for axis, t in zip(axes, steps, strict=True)]
        inside = reduce(And, [part for _, holds in found for part in holds])
        element_under = x[(n, g, c, *(at for at, _ in found))].astype(kind)
        under = Call(kind, Op.IF_THEN_ELSE, (inside, element_under, const(0, kind)))
        weight = w[(g, c, o, *taps) if transposed else (g, o, c, *taps)].astype(kind)
        b.store(total, (), total[()] + weight * under)
    return total[()]


def _coordinates(axes: Sequence[WindowAxis], place: Expr) -> list[Expr]:
    """The place along each axis for a row-major number."""
    found: list[Expr] = []
    for k, axis in enumerate(axes):
        own = place if k == len(axes) - 1 else place // product([each.count for each in axes[k + 1 :]])
        found.append(own % axis.count if k else own)
    return found
