"""Convolutions with constant weights that are packed into panels of output channels.

The weights that a register tile of sums reads are contiguous, without a copy at each call.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple, Unpack

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType, PrimFunc, TensorType
from tirlite.kernels.operators.conv import WindowAxis, phases_from
from tirlite.kernels.operators.convolution import OutTile, filling, storing, with_bias
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.shapes import Extent, extents, is_one, product as count_of
from tirlite.kernels.operators.window import Moves, Window, picking

# The most elements of a block of channels at all places, which fit in the L1 cache besides the weights of a panel; and
# the fewest channels that amortize loading and storing the block's sums.
_ELEMENTS, _FEWEST = 6272, 48
_PIECES = 4  # the fewest pieces for workers
# The weights of a part of the channels, which fit in the L1 cache besides the elements that they are multiplied by.
_WEIGHTS = 4608
# Convolutions go by rows if all weights fit in the L1 cache, and a row has as many columns as most register tiles. The
# results of at most `_ROWS` rows are stored together, if they fill vectors.
_ALL_WEIGHTS, _COLUMNS, _ROWS, _LANES = 7168, 12, 4, 16
# Rows are divided into at most `_ZONES` zones if at most `_INSIDE` of their taps are inside of the image: with 33 rows
# and a dilation of 12 these are 76 %, and zones took 0.78 of the time. Zones of columns as well were slower than none.
_INSIDE, _ZONES = 0.9, 3


@factory
def convolution(
    X: TensorType, W: TensorType, B: TensorType | None, Y: TensorType, *, groups: int = 1, **moves: Unpack[Moves]
) -> PrimFunc:
    """The convolution of x with weights packed into panels, `[panels, inputs of a group, *window, outputs]`.

    Vectors run over outputs, and sums are transposed when stored. An image with padding is copied with it: a single one
    once for all panels, each of several once per share of the panels. Of 1 x 1 windows, what strides read is copied.
    """
    batches, (blocks, taken, *taps, size), image = extents(X)[0], extents(W), extents(Y)[2:]
    window = Window.of(extents(X)[2:], image, taps, **moves)
    places, elements, kind = count_of(image), count_of(extents(X)[2:]), computed_in(X.dtype)
    is_point, is_bare = count_of(taps) == 1, _is_bare(window) and X.dtype == kind
    add_windows, hold, held_type = _of_windows(window, size, taken, kind, is_bare=is_bare)
    is_picked, planes = is_point and not window.is_point, batches * groups
    add_up = _of_points(places, size, taken, kind) if is_point else add_windows
    panel, pick = _panel(add_up, (places, size), kind, (groups, blocks), B is not None), picking(window)
    several = _of_several(panel, hold, held_type, (planes, groups, blocks))
    if goes_by_rows(window, extents(W), groups) and X.dtype == kind:
        sweep = _by_rows(window, batches, W, has_bias=B is not None)
        return with_bias("convolution", (X, W, B, Y), (blocks, size), sweep)

    @tl.inline
    def sweep(x, w, biases, y):
        images = tl.view(x, x.dtype[planes, taken, elements])
        if tl.static(is_picked):
            whole = tl.view(x, x.dtype[1, planes * taken, elements])
            picked = tl.alloc(x.dtype[planes, taken, places])
            pick(picked, whole, 0)
            panels(picked, w, biases, y)
        elif tl.static(is_point or is_bare):
            panels(images, w, biases, y)
        elif tl.static(is_one(planes)):
            held = tl.alloc(held_type)
            hold(held, images, 0)
            panels(held, w, biases, y)
        else:
            results = tl.view(y, y.dtype[batches, blocks, size, places])
            with tl.allow("contract"):
                several(images, w, results, biases)

    @tl.inline
    def panels(images, w, biases, y):
        results = tl.view(y, y.dtype[batches, blocks, size, places])
        with tl.allow("contract"):
            if tl.static(is_one(batches)):
                for p in tl.parallel(blocks):
                    panel(images, w, results, biases, 0, p)
            else:
                for p in tl.parallel(batches * blocks):
                    panel(images, w, results, biases, p // blocks, p % blocks)

    return with_bias("convolution", (X, W, B, Y), (blocks, size), sweep)


def _is_bare(window: Window) -> bool:
    """Whether no tap of a window of two axes with known extents is in the padding."""
    axes = zip(*window, strict=True)
    inside = ((places - 1) * step + (size - 1) * gap < inputs for inputs, places, size, step, _, gap in axes)
    return not any(window.before) and all(inside)


def goes_by_rows(window: Window, weights: Sequence[Extent], groups: int) -> bool:
    """Whether all weights stay in the L1 cache while results are computed row by row, without a copy of the image."""
    count = count_of(weights)
    is_small = isinstance(count, int) and count <= _ALL_WEIGHTS and groups == 1 != count_of(window.size)
    return is_small and window.places[-1] >= _COLUMNS and _is_bare(window)


def _by_rows(window: Window, batches: Extent, W: TensorType, *, has_bias: bool) -> Inline:
    """`sweep(x, w, biases, y)`: all results, those of a few rows together, panel by panel."""
    (height, width), (rows, columns), (blocks, taken, *_, size) = window.inputs, window.places, extents(W)
    high = next((n for n in range(1, _ROWS + 1) if rows % n == 0 and n * columns % _LANES == 0), 1)
    kind, bands, zone = computed_in(W.dtype), rows // high, _Zone(0, high, 0, window.size[0])
    add_up = _of_zone(window, (taken, 1, size), kind, is_once=True)

    @tl.inline
    def sweep(x, w, biases, y):
        images = tl.view(x, kind[batches, taken, height, width])
        results = tl.view(y, y.dtype[batches, blocks, size, bands, high * columns])
        with tl.allow("contract"):
            for piece in tl.parallel(batches * bands):
                t, band = piece // bands, piece % bands
                for p in range(blocks):
                    sums = tl.alloc(kind[high, columns, size])
                    add_up(sums, images, w, t, p, zone, band * high)
                    line = tl.view(sums, kind[high * columns, size])
                    for q in range(size):
                        for i in range(high * columns):
                            if tl.static(has_bias):
                                results[t, p, q, band, i] = y.dtype(line[i, q] + kind(biases[p, q]))
                            else:
                                results[t, p, q, band, i] = y.dtype(line[i, q])

    return sweep


def _of_several(panel: Inline, hold: Inline, held_type: TensorType, of: tuple[Extent, int, int]) -> Inline:
    """`several(images, w, results, biases)`: all results of this many planes, groups and panels.

    A plane is copied once per share of its panels. The shares give workers an even number of pieces, at least `_PIECES`
    if possible; with an unknown number of planes each panel is a share.
    """
    planes, groups, blocks = of
    own = shares = blocks // groups
    if isinstance(planes, int):
        counts = (n for n in range(1, own) if own % n == 0)
        shares = next((n for n in counts if planes * n % 2 == 0 and planes * n >= _PIECES), own)
    together = own // shares

    @tl.inline
    def several(images, w, results, biases):
        for piece in tl.parallel(planes * shares):
            plane, first = piece // shares, piece % shares * together
            held = tl.alloc(held_type)
            hold(held, images, plane)
            for p in range(together):
                panel(held, w, results, biases, plane // groups, plane % groups * own + first + p)

    return several


def _panel(add_up: Inline, held: tuple[Extent, int], kind: DType, of: tuple[int, int], has_bias: bool) -> Inline:
    """`panel(images, w, results, biases, t, p)`: the results of panel p at all places; `of` is (groups, panels)."""
    (places, size), (groups, blocks) = held, of

    @tl.inline
    def panel(images, w, results, biases, t, p):
        sums = tl.alloc(kind[places, size])
        add_up(sums, images, w, t if tl.static(groups == 1) else t * groups + p // (blocks // groups), p)
        for j in range(size):
            for i in range(places):
                if tl.static(has_bias):
                    results[t, p, j, i] = results.dtype(sums[i, j] + kind(biases[p, j]))
                else:
                    results[t, p, j, i] = results.dtype(sums[i, j])

    return panel


@factory
def conv_transpose(
    X: TensorType, W: TensorType, B: TensorType | None, Y: TensorType, *, groups: int = 1, **moves: Unpack[Moves]
) -> PrimFunc:
    """The transposed 2D convolution, with one group, by weights packed into panels of outputs.

    The places of a phase, which are `strides` apart and have the same taps, are computed together. The weights of their
    taps are contiguous, `[panels, inputs, *taps, outputs]`; phases are in the order of their first taps.
    """
    (batches, _, *image), (blocks, _, *taps, size), places = extents(X), extents(W), extents(Y)[2:]
    window, kind = Window.of(image, places, taps, **moves), computed_in(X.dtype)
    (row_step, step), phases = window.strides, [*phases_from(window)]
    add_up, hold, held_type = _of_phases(window, phases, W, kind)
    counts = [[axis.count for axis in axes] for axes in phases]
    store = storing(kind, 1, has_bias=B is not None)

    @tl.inline
    def panel(images, w, results, biases, t, p):
        held = tl.alloc(held_type)
        hold(held, images, t)
        for phase in tl.static(range(len(phases))):
            rows, columns = tl.static(counts[phase][0]), tl.static(counts[phase][1])
            sums = tl.alloc(kind[rows, columns, size])
            add_up(phase, sums, held, w, p)
            for q in range(size):
                for i in range(rows):
                    for j in range(columns):
                        at = i * row_step + tl.static(phases[phase][0].first)
                        beside = j * step + tl.static(phases[phase][1].first)
                        store(results, t, p * size + q, 0, at, beside, sums[i, j, q], biases)

    @tl.inline
    def panels(x, w, biases, y):
        results = tl.view(y, y.dtype[batches, blocks * size, 1, places[0], places[1]])
        with tl.allow("contract"):
            for piece in tl.parallel(batches * blocks):
                panel(x, w, results, biases, piece // blocks, piece % blocks)

    return with_bias("conv_transpose", (X, W, B, Y), (1, blocks * size), panels)


def _of_phases(
    window: Window, phases: Sequence[Sequence[WindowAxis]], W: TensorType, kind: DType
) -> tuple[Inline, Inline, TensorType]:
    """`add_up(phase, sums, held, w, p)`: the sums of panel p at the places of a phase, from the copied plane.

    Also returns `hold(held, images, t)`, which copies plane t with the padding that any phase reads, and the type of
    the copy.
    """
    (blocks, taken, *_, size), (down, across) = extents(W), zip(*phases, strict=True)
    firsts = [min(axis.offset - axis.taps + 1 for axis in axes) for axes in (down, across)]
    ends = [max(axis.offset + axis.count for axis in axes) for axes in (down, across)]
    high, wide = (end - first for end, first in zip(ends, firsts, strict=True))
    (height, width), around = window.inputs, (-firsts[0], -firsts[1])
    begins = _begins(down, across, count_of((blocks, taken, size)) * W.dtype.bytes)
    block = OutTile(high, wide, wide, high * wide, (0, 0), by_rows=True)
    fill = filling(window._replace(strides=(1, 1), before=around), block, kind, whole=True)

    @tl.inline
    def hold(held, images, t):
        planes = tl.view(images, images.dtype[images.shape[0], taken, 1, height, width])
        lines = tl.view(held, kind[taken, 1, 1, 1, high * wide])
        for c in range(taken):
            fill(lines, planes, 0, t, c, 0, 0, 0, 0)

    @tl.inline
    def add_up(phase, sums, held, w, p):
        top, start = tl.static(down[phase].offset - firsts[0]), tl.static(across[phase].offset - firsts[1])
        rows, columns = tl.static(down[phase].taps), tl.static(across[phase].taps)
        factors = tl.view(w, w.dtype[blocks, taken, rows, columns, size], byte_offset=tl.static(begins[phase]))
        for i in range(tl.static(down[phase].count)):
            for j in range(tl.static(across[phase].count)):
                for q in range(size):
                    total = kind(0)
                    for c in tl.reduce(taken):
                        for r in tl.reduce(rows):
                            for s in tl.reduce(columns):
                                total += held[c, i + top - r, j + start - s] * kind(factors[p, c, r, s, q])
                    sums[i, j, q] = total

    return add_up, hold, kind[taken, high, wide]


def _begins(down: Sequence[WindowAxis], across: Sequence[WindowAxis], each: int) -> list[int]:
    """The byte offset of each phase's weights, with `each` bytes per tap."""
    made, begin = [0] * len(down), 0
    for phase in sorted(range(len(down)), key=lambda phase: (down[phase].tap, across[phase].tap)):
        made[phase] = begin
        begin += down[phase].taps * across[phase].taps * each
    return made


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
    """The convolution of bytes in i32, plus b, by weights `[panels, *window, groups of inputs, outputs, of a group]`.

    x is padded with z, and copied channels-last, so that one dot product multiplies a group of inputs. w may be padded
    with inputs of 0.
    """
    batches, (rows, columns) = extents(X)[0], extents(Y)[2:]
    blocks, down, across, parts, size, each = extents(W)
    (row_step, step), (row_gap, gap) = moves["strides"], moves["dilations"]
    high, wide = (rows - 1) * row_step + (down - 1) * row_gap + 1, (columns - 1) * step + (across - 1) * gap + 1

    kind = X.dtype if X.dtype.bits == W.dtype.bits else W.dtype
    copy = _beside(extents(X)[1:], wide, parts * each, moves["pads"][:2], kind)

    @tl.inline
    def panel(results, held, w, biases, t, p):
        sums = tl.alloc(tl.i32[rows, columns, size])
        for i in range(rows):
            for j in range(columns):
                for q in range(size):
                    total = tl.i32(0)
                    for r in tl.reduce(down):
                        for s in tl.reduce(across):
                            for c in tl.reduce(parts):
                                for e in tl.reduce(each):
                                    total += tl.i32(
                                        held[i * row_step + r * row_gap, j * step + s * gap, each * c + e]
                                    ) * tl.i32(w[p, r, s, c, q, e])
                    sums[i, j, q] = total
        places = tl.view(sums, tl.i32[rows * columns, size])
        for q in range(size):
            for i in tl.parallel(rows * columns):
                results[t, p, q, i] = places[i, q] + biases[p, q]

    @tl.kernel
    def conv_bytes(x: X, z: Z, w: W, b: B, y: tl.out[Y]):
        beyond = tl.view(z, z.dtype[1])
        biases = tl.view(b, tl.i32[blocks, size])
        results = tl.view(y, tl.i32[batches, blocks, size, rows * columns])
        held = tl.alloc(kind[high, wide, parts * each])
        for t in range(batches):
            for i in tl.parallel(high):
                copy(held, x, beyond[0], t, i)
            for p in tl.parallel(blocks):
                panel(results, held, w, biases, t, p)

    return conv_bytes.ir


def _beside(image: tuple[Extent, ...], wide: Extent, whole: Extent, before: tuple[int, ...], kind: DType) -> Inline:
    """`copy(held, images, beyond, t, i)`: copies a row of an image with its padding, channels last."""
    (taken, height, width), (above, left) = image, before
    inside, behind = max(0, min(width, wide - left)), min(wide, left + width)

    @tl.inline
    def clear(held, beyond, i, start, stop, first):
        for j in range(start, stop):
            for c in range(first, whole):
                held[i, j, c] = kind(beyond)

    @tl.inline
    def copy(held, images, beyond, t, i):
        if above <= i and i < above + height:
            clear(held, beyond, i, 0, min(left, wide), 0)
            for j in range(inside):
                for c in range(taken):
                    held[i, left + j, c] = kind(images[t, c, i - above, j])
            clear(held, beyond, i, left, behind, taken)
            clear(held, beyond, i, behind, wide, 0)
        else:
            clear(held, beyond, i, 0, wide, 0)

    return copy


def _of_points(places: Extent, size: int, taken: Extent, kind: DType) -> Inline:
    """`add_up(sums, images, w, t, p)`: the sums of panel p over the channels of plane t, without a copy.

    Channels are summed in blocks that fit in the L1 cache at all places, as several register tiles read each line.
    """
    count = _blocks(taken, places)
    each = taken // count

    @tl.inline
    def add_up(sums, images, w, t, p):
        blocks = tl.view(images, images.dtype[images.shape[0] * count, each, places])
        factors = tl.view(w, w.dtype[w.shape[0] * count, each, size])
        for i in range(places):
            for j in range(size):
                sums[i, j] = kind(0)
        for part in range(count):
            own, other = t * count + part, p * count + part
            for i in range(places):
                for j in range(size):
                    total = sums[i, j]
                    for k in tl.reduce(each):
                        total += kind(blocks[own, k, i]) * kind(factors[other, k, j])
                    sums[i, j] = total

    return add_up


def _parts(taken: Extent, weights: int) -> int:
    """The number of equal parts of the channels such that a part's weights stay in the L1 cache.

    `weights` is the number of weights per channel. 1 if the channels only divide into parts that are much smaller.
    """
    if not isinstance(taken, int):
        return 1
    most = max(_WEIGHTS // weights, 1)
    count = next((n for n in range(-(-taken // most), taken + 1) if taken % n == 0), 1)
    return count if 2 * (taken // count) > most else 1


def _blocks(taken: Extent, places: Extent) -> int:
    """The number of equal blocks of channels with about `_ELEMENTS` elements, or `_FEWEST` channels, at most."""
    if not isinstance(taken, int) or not isinstance(places, int):
        return 1
    most = max(_ELEMENTS // places, _FEWEST)
    return next((n for n in range(1, taken + 1) if taken % n == 0 and taken // n <= most), 1)


class _Zone(NamedTuple):
    """The result rows from `first` to below `end`, and their rows of taps inside of the image, `top` to `bottom`."""

    first: int
    end: int
    top: int
    bottom: int


def _zones(window: Window) -> list[_Zone]:
    """The zones of result rows for a window of known extents; one zone with all taps if few are outside."""
    inputs, places, size, step, before, gap = (own[0] for own in window)
    inside = [[tap for tap in range(size) if 0 <= row * step - before + tap * gap < inputs] for row in range(places)]
    runs = [(taps, [*rows]) for taps, rows in groupby(range(places), inside.__getitem__)]
    if len(runs) > _ZONES or not all(inside) or sum(map(len, inside)) > _INSIDE * places * size:
        return [_Zone(0, places, 0, size)]
    return [_Zone(rows[0], rows[-1] + 1, taps[0], taps[-1] + 1) for taps, rows in runs]


def _of_windows(
    window: Window, size: int, taken: Extent, kind: DType, *, is_bare: bool
) -> tuple[Inline, Inline, TensorType]:
    """`add_up(sums, held, w, t, p)`: the sums of panel p over the window, from the copied plane.

    Also returns `hold(held, images, t)`, which copies plane t with its padding, and the type of the copy. With
    `is_bare`, `add_up` reads plane t of the images themselves.
    """
    (height, width), (rows, columns), (down, across) = window.inputs, window.places, window.size
    (row_step, step), (row_gap, gap) = window.strides, window.dilations
    high, wide = (rows - 1) * row_step + 1, (columns - 1) * step + (across - 1) * gap + 1
    block = OutTile(high, wide, wide, high * wide, ((down - 1) * row_gap, 0), by_rows=True)
    copied, held_each = block.copied, block.held
    fill = filling(window._replace(strides=(1, 1)), block, kind, whole=True)
    count = _parts(taken, down * across * size)
    each, (tall, long) = taken // count, (height, width) if is_bare else (copied, wide)
    zones = _zones(window)

    @tl.inline
    def hold(held, images, t):
        planes = tl.view(images, images.dtype[images.shape[0], taken, 1, height, width])
        for c in range(taken):
            fill(held, planes, 0, t, c, 0, 0, 0, 0)

    @tl.inline
    def add_up(sums, held, w, t, p):
        first = t * count if tl.static(is_bare) else 0
        under = tl.view(held, kind[held.shape[0] * count if is_bare else count, each, tall, long])
        totals = tl.view(sums, kind[rows, columns, size])
        if tl.static(not is_once):
            for i in range(rows):
                for j in range(columns):
                    for q in range(size):
                        totals[i, j, q] = kind(0)
        for part in range(count):
            for zone in tl.static(zones):
                add_zone(totals, under, w, first + part, p * count + part, zone, 0)

    is_once = count == 1 and len(zones) == 1
    add_zone = _of_zone(window, (taken, count, size), kind, is_once=is_once)
    return add_up, hold, kind[taken, 1, 1, 1, held_each]


def _of_zone(window: Window, of: tuple[Extent, int, int], kind: DType, *, is_once: bool) -> Inline:
    """`add_zone(totals, under, w, part, other, zone, row)`: adds a part of the channels to the sums of a zone.

    The sums are those of the results from `row` on. `of` is the channels of a group, the number of their parts, and the
    outputs of a panel. With `is_once`, the sums are those of this part alone.
    """
    taken, count, size = of
    (row_step, step), (row_gap, gap) = window.strides, window.dilations
    columns, (down, across), each = window.places[1], window.size, taken // count
    # LLVM turns the counter of a loop of two iterations into a flag, and then hoists all loads away from their uses, so
    # such a loop is fused with the loop around it.
    outer = each if down > 1 else 1

    @tl.inline
    def add_zone(totals, under, w, part, other, zone, row):
        factors = tl.view(w, w.dtype[w.shape[0] * count, each, down, across, size])
        pairs = tl.view(w, w.dtype[w.shape[0] * count, outer, each * down * across // outer, size])
        for i in range(tl.static(zone.first), tl.static(zone.end)):
            for j in range(columns):
                for q in range(size):
                    total = kind(0) if tl.static(is_once) else totals[i, j, q]
                    if tl.static(across == 2 and down > 1):
                        for c in tl.reduce(each):
                            for k in tl.reduce(2 * tl.static(zone.top), 2 * tl.static(zone.bottom)):
                                at = under[part, c, (row + i) * row_step + k // 2 * row_gap, j * step + k % 2 * gap]
                                total += at * kind(pairs[other, c, k, q])
                    elif tl.static(across == 2):
                        for k in tl.reduce(2 * each):
                            at = under[part, k // 2, (row + i) * row_step, j * step + k % 2 * gap]
                            total += at * kind(pairs[other, 0, k, q])
                    else:
                        for c in tl.reduce(each):
                            for r in tl.reduce(tl.static(zone.top), tl.static(zone.bottom)):
                                for s in tl.reduce(across):
                                    at = under[part, c, (row + i) * row_step + r * row_gap, j * step + s * gap]
                                    total += at * kind(factors[other, c, r, s, q])
                    totals[i, j, q] = total

    return add_zone
