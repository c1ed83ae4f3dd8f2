"""Transposes of convolutions as products of all elements and all taps, which are added where windows overlap.

The products are `[outputs, *taps, *elements]`, or `[*elements, outputs, *taps]` for few elements, so that one of the
two fills vectors. They are computed for a few outputs at a time, so that a cache holds them.
"""

from __future__ import annotations

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType, PrimFunc
from tirlite.kernels.operators.convolution import Types, storing, with_bias
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.shapes import Extent, extents, is_same
from tirlite.kernels.operators.window import Window

_FEW = 32  # elements: fewer do not fill vectors
_HELD = 1 << 17  # bytes of parts, about
_TOGETHER = (8, 4)  # elements of a row with fewer than twice as many
_ROWS = 64  # of products, at least, which share what is read of the image


def overlapping(types: Types, window: Window, groups: int) -> PrimFunc:
    """The transpose of the convolution over a window of one axis or two, each without steps or not dilated."""
    X, W, B, _ = types
    kind, window = computed_in(X.dtype), window if len(window.size) > 1 else window.with_one_row()
    planes, taken, outputs = extents(X)[0] * groups, extents(X)[1] // groups, extents(W)[1]
    (height, width), (down, across), (rows, columns) = window.inputs, window.size, window.places
    elements, taps = height * width, down * across
    together = _together(outputs, taps, elements, kind)
    is_few = isinstance(elements, int) and elements < _FEW
    own, held = kind[together, down, across, height, width], kind[together * taps, elements]
    if is_few:
        own, held = kind[height, width, together, down, across], kind[elements, together * taps]
    store = storing(kind, groups, has_bias=B is not None)
    finish = _side_by_side if stand_apart(window) else _added_up
    of_plane = finish(window, kind, store, is_few=is_few)

    @tl.inline
    def multiply(made, images, factors, t, share):
        for i in range(made.shape[0]):
            for j in range(made.shape[1]):
                total = kind(0)
                for c in tl.reduce(taken):
                    if tl.static(is_few):
                        total += kind(images[t, c, i]) * kind(factors[t % groups, c, share * (together * taps) + j])
                    else:
                        total += kind(factors[t % groups, c, share * (together * taps) + i]) * kind(images[t, c, j])
                made[i, j] = total

    @tl.inline
    def spread(x, w, biases, y):
        images = tl.view(x, x.dtype[planes, taken, elements])
        factors = tl.view(w, w.dtype[groups, taken, outputs * taps])
        results = tl.view(y, y.dtype[planes, outputs, 1, rows, columns])
        with tl.allow("contract"):
            for share in range(outputs // together):
                for t in range(planes):
                    parts = tl.alloc(own)
                    made = tl.view(parts, held)
                    multiply(made, images, factors, t, share)
                    for o in range(together):
                        of_plane(results, parts, t, o, share * together + o, biases)

    return with_bias("conv_transpose", types, (groups, outputs), spread)


def _together(outputs: Extent, taps: Extent, elements: Extent, kind: DType) -> Extent:
    """How many outputs are computed together: a divisor of all whose products fit the cache, with enough rows."""
    if not isinstance(outputs, int) or not isinstance(taps, int):
        return outputs
    fits = _HELD // (taps * elements * kind.bytes) if isinstance(elements, int) else 0
    most = max(1, fits, -(-_ROWS // taps))
    counts = (count for count in range(1, outputs + 1) if outputs % count == 0)
    return next(outputs // count for count in counts if outputs // count <= most)


def stand_apart(window: Window) -> bool:
    """Whether windows tile the result exactly, without overlaps or padding."""
    whole = (inputs * stride for inputs, stride in zip(window.inputs, window.strides, strict=True))
    are_whole = all(map(is_same, whole, window.places)) and {*window.before} == {0} and {*window.dilations} == {1}
    return window.size == window.strides and are_whole


def _side_by_side(window: Window, kind: DType, store: Inline, *, is_few: bool) -> Inline:
    """`of_plane(y, parts, t, o, output, bias)`: the results of an output, each of which is one product."""
    (height, width), (row_step, step) = window.inputs, window.strides
    # The last of a few elements are stored with some of those before, by whole vectors.
    together = next((n for n in _TOGETHER if n <= width < 2 * n), width) if isinstance(width, int) else width

    @tl.inline
    def of_part(y, parts, t, o, output, bias, i, j, r, p):
        if tl.static(is_few):
            store(y, t, output, 0, i * row_step + r, j * step + p, parts[i, j, o, r, p], bias)
        else:
            store(y, t, output, 0, i * row_step + r, j * step + p, parts[o, r, p, i, j], bias)

    @tl.inline
    def of_plane(y, parts, t, o, output, bias):
        for i in range(height):
            for r in range(row_step):
                for first in range(0, width, together):
                    for v in range(together):
                        for p in tl.static(range(step)):
                            of_part(y, parts, t, o, output, bias, i, min(first, width - together) + v, r, p)

    return of_plane


def _added_up(window: Window, kind: DType, store: Inline, *, is_few: bool) -> Inline:
    """The same for overlapping windows, whose products are added."""
    (rows, columns), step = window.places, window.strides[1]
    add_up = _adding_up(window, kind, is_few=is_few)

    @tl.inline
    def of_plane(y, parts, t, o, output, bias):
        for row in range(rows):
            for phase in range(step):
                sums = tl.alloc(kind[(columns + step - 1) // step])
                add_up(sums, parts, o, row, phase)
                for j in range((columns - phase + step - 1) // step):
                    store(y, t, output, 0, row, j * step + phase, sums[j], bias)

    return of_plane


def _adding_up(window: Window, kind: DType, *, is_few: bool) -> Inline:
    """`add_up(sums, parts, o, row, phase)`: the sums at all places of a row with this phase."""
    (height, width), (down, across) = window.inputs, window.size
    (row_step, step), (above, before), (row_gap, gap) = window.strides, window.before, window.dilations

    @tl.inline
    def add_up(sums, parts, o, row, phase):
        near, aside = (row + above) % row_step, (phase + before) % step
        for j in range(sums.shape[0]):
            sums[j] = kind(0)
        for r in range((down - near + row_step - 1) // row_step):
            i = (row + above) // row_step - r * row_gap
            if i >= 0 and i < height:
                for p in range((across - aside + step - 1) // step):
                    for j in range(sums.shape[0]):
                        at = j + (phase + before) // step - p * gap
                        if at >= 0 and at < width:
                            if tl.static(is_few):
                                sums[j] += parts[i, at, o, near + r * row_step, aside + p * step]
                            else:
                                sums[j] += parts[o, near + r * row_step, aside + p * step, i, at]

    return add_up
