"""Makes the function that multiplies batches of matrices of given shapes, with a given way to store sums.

There are three ways to go through the right operand: as it lies, a vector at a time; by panels of some columns, which
are copied together first, where it is transposed, narrow, or of another type than the sums; by rows, for a single row.
"""

from __future__ import annotations

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.product import CHUNK, column_major, dots, multiply_add, row_major, tile_of, tiling
from tirlite.kernels.operators.shapes import Extent

DOTS = 4  # sums along rows that are computed together
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
    tile = tile_of(kind)
    batches, n, terms, m = shape
    left = column_major if trans_a else row_major
    right = column_major if trans_b else row_major
    if kind == dtype and trans_b and not trans_a and n == 1:
        return _by_dots(shape, kind, store, index_a, index_b)
    if kind == dtype and not trans_b and isinstance(m, int) and m >= tile.lanes:
        return _in_place_panels(shape, kind, left, store, index_a, index_b)
    columns = tile.lanes if isinstance(m, int) and m <= tile.lanes else tile.columns
    chunk_rows = CHUNK * tile.rows
    tiles = tiling(kind, columns, terms, left, store)

    @tl.inline
    def multiply(a, b, y, extra):
        chunks = (n + chunk_rows - 1) // chunk_rows
        panels = (m + columns - 1) // columns
        for w in tl.parallel(batches * chunks * panels):
            t, first, j = piece(w, chunks, panels, chunk_rows, columns)
            u = index_b(t)
            panel = tl.alloc(kind[1, terms, columns])
            for p in range(terms):
                for q in range(columns):
                    panel[0, p, q] = kind(right(b, u, p, j + q)) if j + q < m else 0
            last = min(first + chunk_rows, n)
            width = min(columns, m - j)
            tiles(a, index_a(t), first, last, panel, 0, 0, y, t, j, 0, width, extra)

    return multiply


@tl.inline
def piece(w, chunks, panels, chunk_rows, columns):
    """The batch, the first row and the first column of the w-th piece of the work."""
    return w // (chunks * panels), w // panels % chunks * chunk_rows, w % panels * columns


def _in_place_panels(
    shape: Matrices, kind: DType, left: Inline, store: Inline, index_a: Inline, index_b: Inline
) -> Inline:
    """Where the right operand can be read as it lies. The last columns may be computed twice, to fill a tile."""
    batches, n, terms, m = shape
    tile = tile_of(kind)
    columns = tile.columns if m >= tile.columns else tile.lanes
    chunk_rows = CHUNK * tile.rows
    panels = -(-m // columns)
    tiles = tiling(kind, columns, terms, left, store)

    @tl.inline
    def multiply(a, b, y, extra):
        chunks = (n + chunk_rows - 1) // chunk_rows
        for w in tl.parallel(batches * chunks * panels):
            t, first, j = piece(w, chunks, panels, chunk_rows, columns)
            last = min(first + chunk_rows, n)
            start = min(j, m - columns)
            tiles(a, index_a(t), first, last, b, index_b(t), start, y, t, start, j - start, columns, extra)

    return multiply


def _by_dots(shape: Matrices, kind: DType, store: Inline, index_a: Inline, index_b: Inline) -> Inline:
    """For a single row, by rows of a transposed right operand, which is then read once, and in order."""
    batches, n, terms, m = shape
    lanes = tile_of(kind).lanes
    add = multiply_add(kind)

    @tl.inline
    def multiply(a, b, y, extra):
        blocks = (m + DOTS - 1) // DOTS
        for w in tl.parallel(batches * blocks):
            t = w // blocks
            j = w % blocks * DOTS
            if j + DOTS <= m:
                dots(kind, add, a, index_a(t), 0, b, index_b(t), j, DOTS, lanes, terms, store, y, t, extra)
            else:
                for c in range(j, m):
                    dots(kind, add, a, index_a(t), 0, b, index_b(t), c, 1, lanes, terms, store, y, t, extra)

    return multiply
