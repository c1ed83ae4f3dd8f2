"""Makes the function that multiplies batches of matrices of given shapes, with a given way to store sums.

There are three ways to go through the right operand: as it lies, a vector at a time; by panels of some columns, which
are copied together first, where it is transposed, narrow, or of another type than the sums; by rows, for a single row.
"""

from __future__ import annotations

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.product import CHUNK, ROWS, column_major, dots, lanes_of, multiply_add, row_major, tiling
from tirlite.kernels.operators.shapes import Extent

CHUNK_ROWS = CHUNK * ROWS
Matrices = tuple[Extent, Extent, Extent, Extent]  # batches, rows, terms, columns


def multiplication(
    dtype: DType,
    shape: Matrices,
    store: Inline,
    index_a: Inline,
    index_b: Inline,
    *,
    trans_a: bool = False,
    trans_b: bool = False,
) -> Inline:
    """`multiply(a, b, y, extra)` of operands with the axes batch, row and column; `store` is called for each sum."""
    kind = computed_in(dtype)
    lanes = lanes_of(kind)
    batches, n, terms, m = shape
    left = column_major if trans_a else row_major
    right = column_major if trans_b else row_major
    if kind == dtype and trans_b and not trans_a and n == 1:
        return _by_dots(shape, kind, store, index_a, index_b)
    if kind == dtype and not trans_b and isinstance(m, int) and m >= lanes:
        return _in_place_panels(shape, kind, left, store, index_a, index_b)
    columns = lanes if isinstance(m, int) and m <= lanes else 2 * lanes
    tiles = tiling(kind, columns, terms, left, store)

    @tl.inline
    def multiply(a, b, y, extra):
        chunks = (n + CHUNK_ROWS - 1) // CHUNK_ROWS
        panels = (m + columns - 1) // columns
        for w in tl.parallel(batches * chunks * panels):
            t, first, j = piece(w, chunks, panels, columns)
            u = index_b(t)
            panel = tl.alloc(kind[1, terms, columns])
            for p in range(terms):
                for q in range(columns):
                    panel[0, p, q] = kind(right(b, u, p, j + q)) if j + q < m else 0
            last = min(first + CHUNK_ROWS, n)
            width = min(columns, m - j)
            tiles(a, index_a(t), first, last, panel, 0, 0, y, t, j, 0, width, extra)

    return multiply


@tl.inline
def piece(w, chunks, panels, columns):
    """The batch, the first row and the first column of the w-th piece of the work."""
    return w // (chunks * panels), w // panels % chunks * CHUNK_ROWS, w % panels * columns


def _in_place_panels(
    shape: Matrices, kind: DType, left: Inline, store: Inline, index_a: Inline, index_b: Inline
) -> Inline:
    """Where the right operand can be read as it lies. The last columns may be computed twice, to fill a tile."""
    batches, n, terms, m = shape
    lanes = lanes_of(kind)
    columns = 2 * lanes if m >= 2 * lanes else lanes
    panels = -(-m // columns)
    tiles = tiling(kind, columns, terms, left, store)

    @tl.inline
    def multiply(a, b, y, extra):
        chunks = (n + CHUNK_ROWS - 1) // CHUNK_ROWS
        for w in tl.parallel(batches * chunks * panels):
            t, first, j = piece(w, chunks, panels, columns)
            last = min(first + CHUNK_ROWS, n)
            start = min(j, m - columns)
            tiles(a, index_a(t), first, last, b, index_b(t), start, y, t, start, j - start, columns, extra)

    return multiply


def _by_dots(shape: Matrices, kind: DType, store: Inline, index_a: Inline, index_b: Inline) -> Inline:
    """For a single row, by rows of a transposed right operand, which is then read once, and in order."""
    batches, n, terms, m = shape
    lanes = lanes_of(kind)
    add = multiply_add(kind)

    @tl.inline
    def multiply(a, b, y, extra):
        blocks = (m + ROWS - 1) // ROWS
        for w in tl.parallel(batches * blocks):
            t = w // blocks
            j = w % blocks * ROWS
            if j + ROWS <= m:
                dots(kind, add, a, index_a(t), 0, b, index_b(t), j, ROWS, lanes, terms, store, y, t, extra)
            else:
                for c in range(j, m):
                    dots(kind, add, a, index_a(t), 0, b, index_b(t), c, 1, lanes, terms, store, y, t, extra)

    return multiply
