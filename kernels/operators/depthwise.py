"""Depthwise convolutions with rows of the image in registers: each is loaded once, and every tap shuffles its lanes.

A row is loaded with its padding, as masked lanes, for all rows of results that use it. So nothing is copied, and with
strides columns are shuffled out of registers. Vectors need not be full: rows may be short.

If rows are so short that a vector holds several, and results have the layout of the image, each tap loads several rows
at once, with lanes masked that reach beyond the ends of their rows.
"""

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType
from tirlite.kernels.operators.shapes import Extent
from tirlite.kernels.operators.window import Window

_SHORT = 8  # columns that are computed together if rows have no more, else twice as many
_HELD = 64  # the most elements of a row that registers hold
_WHOLE = 10  # the most rows of a plane that are computed together as a whole
_ROWS = 8  # the most rows of a band of a higher plane
_LEAST = 3  # fewer rows share too little
_WRITTEN_OUT = 512  # the most products that are unrolled
# Weights of more taps do not stay in registers. LLVM would load those of two loops before both, and spill them, so
# there is one loop, whose last columns overlap those before.
_FEW_TAPS = 25
_MOST_APART = 4  # the greatest column stride at which vectors gather from a row
_BLOCKS = 16  # the most vectors of sums, of several rows each, that registers hold


def goes_by_registers(window: Window, taken: Extent, outputs: Extent, *, permutes: bool = False) -> bool:
    """Whether it is a 2D depthwise convolution of known extents whose rows fit in registers.

    Long rows with stride 1 load taps from memory faster, unless the processor `permutes` lanes.
    """
    extents = (taken, outputs, *window.inputs, *window.places, *window.size, *window.before)
    if (taken, outputs, len(window.size)) != (1, 1, 2) or not all(isinstance(each, int) for each in extents):
        return False
    (rows, columns), (down, across) = window.places, window.size
    if rows < _LEAST or columns < 1 or (window.strides[-1] == 1 and columns > _SHORT and not permutes):
        return False
    return _held(window, _lanes(columns, permutes)) <= _HELD and _together(rows) * down * across <= _WRITTEN_OUT


def _lanes(columns: int, permutes: bool) -> int:
    """The columns that are computed together: fewer if then none are left over."""
    is_even = not permutes and columns % (2 * _SHORT) == _SHORT
    return _SHORT if columns <= _SHORT or is_even else 2 * _SHORT


def _together(rows: int) -> int:
    """How many rows of results are computed together, so that bands are even."""
    return rows if rows <= _WHOLE else -(-rows // -(-rows // _ROWS))


def _held(window: Window, lanes: int) -> int:
    """The elements of a row that `lanes` columns of results read, rounded up to a power of two."""
    needed = (lanes - 1) * window.strides[-1] + (window.size[-1] - 1) * window.dilations[-1] + 1
    return 1 << (needed - 1).bit_length()


def _sees_no_padding(window: Window, first: int, lanes: int) -> bool:
    """Whether these columns of results, with a stride, need no padding: then a vector is loaded for each tap.

    That takes fewer shuffles than strided lanes in registers.
    """
    step, last = window.strides[-1], (window.size[-1] - 1) * window.dilations[-1]
    begin, end = first * step - window.before[-1], (first + lanes - 1) * step - window.before[-1] + last
    return 1 < step <= _MOST_APART and 0 <= begin and end < window.inputs[-1]


def _blocks(window: Window, lanes: int, permutes: bool) -> tuple[list[int], list[int], int]:
    """The blocks of columns that may need padding, the others, and the number of remaining columns.

    That is negative if the last block overlaps the one before.
    """
    full, rest = divmod(window.places[-1], lanes)
    if permutes and full and rest and window.taps > _FEW_TAPS:
        full, rest = full + 1, rest - lanes
    inside = [] if permutes else [q for q in range(full) if _sees_no_padding(window, q * lanes, lanes)]
    # One loop goes over the first and the last, or over all.
    inside = inside if full - len(inside) <= 2 else []
    return [q for q in range(full) if q not in inside], inside, rest


def by_registers(
    window: Window, kind: DType, planes: Extent, groups: Extent, store: Inline, *, permutes: bool
) -> Inline:
    """`sweep(x, beyond, w, bias, y)` stores all results by `store`; the padding adds nothing.

    Rows outside of the image are lanes that are off where processors have registers for such, as all that permute
    lanes do. Elsewhere they are left out.
    """
    (height, width), (rows, columns), (above, left) = window.inputs, window.places, window.before
    (down, across), (row_step, step), row_gap = window.size, window.strides, window.dilations[0]
    high, lanes = _together(rows), _lanes(columns, permutes)
    bands, held, under = -(-rows // high), _held(window, lanes), (high - 1) * row_step + (down - 1) * row_gap + 1
    load, pick, look = _taking(window, kind, high, lanes)
    edges, inside, rest = _blocks(window, lanes, permutes)
    between = edges[-1] - edges[0] if len(edges) == 2 else 1

    @tl.inline
    def some(image, w, bias, y, t, i, j, count, is_inside):
        totals = tl.alloc(kind[high, lanes], scope="local")
        row = tl.alloc(kind[held], scope="local")
        for k in tl.static(range(high)):
            for v in tl.vectorized(lanes):
                totals[k, v] = kind(0)
        for d in tl.static(range(under)):
            u = i * row_step + d - above
            if tl.static(bands > 1 and permutes):
                load(row, image, t, u, j * step - left, u >= 0 and u < height)
                pick(totals, row, w, t % groups, d)
            elif u >= 0 and u < height:
                if tl.static(is_inside):
                    look(totals, image, w, t % groups, t, u, j * step - left, d)
                else:
                    load(row, image, t, u, j * step - left, tl.static(True))
                    pick(totals, row, w, t % groups, d)
        for k in tl.static(range(high)):
            if tl.static(rows % high == 0) or i + k < rows:
                for v in tl.vectorized(count):
                    store(y, t, 0, 0, i + k, j + v, totals[k, v], bias)

    @tl.inline
    def sweep(x, beyond, w, bias, y):
        images = tl.view(x, x.dtype[planes, height, width])
        factors = tl.view(w, w.dtype[groups, down, across])
        results = tl.view(y, y.dtype[planes, 1, 1, rows, columns])
        with tl.allow("contract"):
            for piece in tl.parallel(planes * bands):
                t = piece // bands
                i = piece % bands * high
                if tl.static(len(edges) > 0):
                    for q in range(tl.static(edges[0]), tl.static(edges[-1] + 1), between):
                        first = min(q * lanes, columns - lanes) if tl.static(rest < 0) else q * lanes
                        some(images, factors, bias, results, t, i, first, lanes, tl.static(False))
                if tl.static(len(inside) > 0):
                    for q in range(tl.static(inside[0]), tl.static(inside[-1] + 1)):
                        some(images, factors, bias, results, t, i, q * lanes, lanes, tl.static(True))
                if tl.static(rest > 0):
                    some(images, factors, bias, results, t, i, columns - rest, rest, tl.static(False))

    return sweep


def _taking(window: Window, kind: DType, high: int, lanes: int) -> tuple[Inline, Inline, Inline]:
    """`load(row, image, ...)` with the padding, `pick(totals, row, ...)` of a row, `look(totals, image, ...)`."""
    across, step, gap = window.size[-1], window.strides[-1], window.dilations[-1]
    (height, width), held = window.inputs, _held(window, lanes)
    add = _adding(window, kind, high)

    @tl.inline
    def load(row, image, t, u, first, inside):
        near = min(max(u, 0), height - 1)
        for v in tl.vectorized(held):
            at = first + v
            row[v] = kind(image[t, near, at]) if at >= 0 and at < width and inside else kind(0)

    @tl.inline
    def pick(totals, row, w, g, d):
        for p in tl.static(range(across)):
            for v in tl.vectorized(lanes):
                add(totals, row[v * step + p * gap], w, g, d, p, v)

    @tl.inline
    def look(totals, image, w, g, t, u, first, d):
        for p in tl.static(range(across)):
            for v in tl.vectorized(lanes):
                add(totals, kind(image[t, u, first + p * gap + v * step]), w, g, d, p, v)

    return load, pick, look


def _adding(window: Window, kind: DType, high: int) -> Inline:
    """`add(totals, value, w, g, d, p, v)` adds the products of column tap p in input row d to `high` result rows."""
    down, row_step, row_gap = window.size[0], window.strides[0], window.dilations[0]
    under = range((high - 1) * row_step + (down - 1) * row_gap + 1)
    found = [[(k, divmod(d - k * row_step, row_gap)) for k in range(high)] for d in under]
    taps = [[(k, r) for k, (r, rest) in each if 0 <= r < down and not rest] for each in found]

    @tl.inline
    def add(totals, value, w, g, d, p, v):
        for k, r in tl.static(taps[d]):
            totals[k, v] += kind(w[g, r, p]) * value

    return add


def goes_by_lines(window: Window) -> bool:
    """Whether a vector holds several rows of results in the layout of the image, and registers hold a whole plane.

    Asked of windows that go by registers, on processors that permute lanes: these leave lanes out.
    """
    (rows, columns), lies_alike = window.places, window.places[-1] == window.inputs[-1]
    several = 2 * _SHORT // columns
    return several > 1 and lies_alike and set(window.strides) == {1} and -(-rows // several) <= _BLOCKS


def by_lines(window: Window, kind: DType, planes: Extent, groups: Extent, store: Inline) -> Inline:
    """`sweep(x, beyond, w, bias, y)` stores all results by `store`, several rows at once; the padding adds nothing."""
    (height, width), (rows, columns), (above, left) = window.inputs, window.places, window.before
    (down, across), (row_gap, gap), lanes = window.size, window.dilations, 2 * _SHORT
    line, places = lanes // columns * columns, rows * columns
    blocks = -(-places // line)

    @tl.inline
    def add(totals, image, factor, t, k, down_by, aside):
        for v in tl.vectorized(lanes):
            at, column = k * line + down_by * width + aside + v, v % columns + aside
            is_inside = column >= 0 and column < width and at >= 0 and at < height * width
            totals[k, v] += factor * (kind(image[t, at]) if is_inside else kind(0))

    @tl.inline
    def sweep(x, beyond, w, bias, y):
        images = tl.view(x, x.dtype[planes, height * width])
        factors = tl.view(w, w.dtype[groups, down, across])
        results = tl.view(y, y.dtype[planes, 1, 1, 1, places])
        with tl.allow("contract"):
            for t in tl.parallel(planes):
                totals = tl.alloc(kind[blocks, lanes], scope="local")
                for k in tl.static(range(blocks)):
                    for v in tl.vectorized(lanes):
                        totals[k, v] = kind(0)
                # Taps of a column leave out the same lanes, by masks that stay: 5 x 5 took 0.81 to 0.88 of the time.
                for p in tl.static(range(across)):
                    for r in tl.static(range(down)):
                        factor = kind(factors[t % groups, r, p])
                        for k in tl.static(range(blocks)):
                            add(totals, images, factor, t, k, r * row_gap - above, p * gap - left)
                for k in tl.static(range(blocks)):
                    for v in tl.vectorized(tl.static(min(line, places - k * line))):
                        store(results, t, 0, 0, 0, k * line + v, totals[k, v], bias)

    return sweep
