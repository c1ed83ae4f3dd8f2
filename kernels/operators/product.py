"""The inner parts of all products: sums held in vector registers, over panels that are copied together.

The left operand is read an element at a time, by a function `left(a, t, i, p)` of batch, row and term; the right one a
vector at a time, from a buffer with the axes batch, term and column. A sum goes out by `store(y, u, i, j, sum, extra)`.
What the functions here take as `kind` is the type of the sums.
"""

from __future__ import annotations

from typing import NamedTuple

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType
from tirlite.kernels.operators.shapes import Extent

CHUNK = 32  # tiles below each other that share a panel


class Tile(NamedTuple):
    """The sums that the registers of this machine hold: rows of some vectors, with so many elements in each."""

    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes


def tile_of(kind: DType) -> Tile:
    processor = tl.Target.host().processor
    return Tile(*processor.tile, processor.vector_bytes // kind.bytes)


@tl.inline
def row_major(a, t, i, p):
    return a[t, i, p]


@tl.inline
def column_major(a, t, i, p):
    return a[t, p, i]


@tl.inline
def fused(a, b, c):
    return tl.fma(a, b, c)


@tl.inline
def in_steps(a, b, c):
    return a * b + c


def multiply_add(kind: DType):
    """`a * b + c`, rounded once for floats."""
    return fused if kind.is_float else in_steps


@tl.inline
def plain(y, u, i, j, total, extra):
    y[u, i, j] = y.dtype(total)


@tl.inline
def tile(block, kind, add, left, a, t, i, b, s, j, rows, columns, lanes, terms):
    """block[r, q] = sum of left(a, t, i + r, p) * b[s, p, j + q] over p below `terms`.

    The sums are apart from `block`, which others index as they like: so they stay in registers.
    """
    sums = tl.alloc(kind[rows, columns], scope="local")
    for r in tl.unroll(rows):
        for q in tl.unroll(columns // lanes):
            sums[r, tl.ramp(q * lanes, 1, lanes)] = tl.broadcast(kind(0), lanes)
    for p in range(terms):
        for r in tl.unroll(rows):
            factor = kind(left(a, t, i + r, p))
            for q in tl.unroll(columns // lanes):
                sums[r, tl.ramp(q * lanes, 1, lanes)] = add(
                    tl.broadcast(factor, lanes),
                    b[s, p, tl.ramp(j + q * lanes, 1, lanes)],
                    sums[r, tl.ramp(q * lanes, 1, lanes)],
                )
    for r in tl.unroll(rows):
        for q in tl.unroll(columns // lanes):
            block[r, tl.ramp(q * lanes, 1, lanes)] = sums[r, tl.ramp(q * lanes, 1, lanes)]


def tiling(kind: DType, columns: int, terms: Extent, left: Inline, store: Inline) -> Inline:
    """`tiles(a, t, first, last, b, s, j, y, u, at, known, width, extra)`: rows from `first` to below `last` of y[u].

    Stored are `width` columns from `at` on, of which b[s, :, j] is the first; those below `known` are another's to
    store. `columns` is a number of whole vectors.
    """
    add, (rows, _, lanes) = multiply_add(kind), tile_of(kind)

    @tl.inline
    def tiles(a, t, first, last, b, s, j, y, u, at, known, width, extra):
        block = tl.alloc(kind[rows, columns], scope="local")
        for g in range((last - first) // rows):
            tile(block, kind, add, left, a, t, first + g * rows, b, s, j, rows, columns, lanes, terms)
            for r in range(rows):
                for q in range(known, width):
                    store(y, u, first + g * rows + r, at + q, block[r, q], extra)
        for i in range(first + (last - first) // rows * rows, last):
            tile(block, kind, add, left, a, t, i, b, s, j, 1, columns, lanes, terms)
            for q in range(known, width):
                store(y, u, i, at + q, block[0, q], extra)

    return tiles


@tl.inline
def dots(kind, add, a, t, i, b, s, j, columns, lanes, terms, store, y, u, extra):
    """Sums of a[t, i, p] * b[s, j + c, p] over p, for a few columns: both operands are read along their rows."""
    sums = tl.alloc(kind[columns, lanes], scope="local")
    block = tl.alloc(kind[columns, lanes], scope="local")
    for c in tl.unroll(columns):
        sums[c, tl.ramp(0, 1, lanes)] = tl.broadcast(kind(0), lanes)
    for p in range(terms // lanes):
        for c in tl.unroll(columns):
            sums[c, tl.ramp(0, 1, lanes)] = add(
                a[t, i, tl.ramp(p * lanes, 1, lanes)],
                b[s, j + c, tl.ramp(p * lanes, 1, lanes)],
                sums[c, tl.ramp(0, 1, lanes)],
            )
    for c in tl.unroll(columns):
        block[c, tl.ramp(0, 1, lanes)] = sums[c, tl.ramp(0, 1, lanes)]
    for c in range(columns):
        total = kind(0)
        for q in range(lanes):
            total += block[c, q]
        for p in range(terms // lanes * lanes, terms):
            total = add(a[t, i, p], b[s, j + c, p], total)
        store(y, u, i, j + c, total, extra)
