"""A row of a matrix joined to one number: with several partial results at a time, in the lanes of vectors."""

from __future__ import annotations

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType

VECTOR = 64  # bytes of a vector; narrower machines cut it
VECTORS = 4  # partial results that wait for each other's latency


def row_total(source: DType, kind: DType, prepare: Inline, join: Inline, start: float) -> Inline:
    """`total(x, i, extra)`: all of x[i, :] joined, from `start` on; elements are of type `source`, results of `kind`.

    `prepare(value, extra)` comes before `join(a, b)`, both on numbers and on vectors. The order of the elements is not
    kept: `join` is associative up to rounding, and `start` is neutral to it.
    """
    lanes = VECTOR // kind.bytes
    wide = kind.with_lanes(lanes)
    step = lanes * VECTORS

    @tl.inline
    def total(x, i, extra):
        parts = tl.alloc(kind[VECTORS, lanes], scope="local")
        ends = tl.alloc(kind[VECTORS, lanes], scope="local")
        spread = tl.broadcast(extra, lanes)
        for v in tl.unroll(VECTORS):
            parts[v, tl.ramp(0, 1, lanes)] = tl.broadcast(kind(start), lanes)
        for j in range(x.shape[1] // step):
            for v in tl.unroll(VECTORS):
                values = wide(x[i, tl.ramp(j * step + v * lanes, 1, lanes)])
                parts[v, tl.ramp(0, 1, lanes)] = join(parts[v, tl.ramp(0, 1, lanes)], prepare(values, spread))
        for v in tl.unroll(VECTORS):
            ends[v, tl.ramp(0, 1, lanes)] = parts[v, tl.ramp(0, 1, lanes)]
        result = kind(start)
        for j in range(x.shape[1] // step * step, x.shape[1]):
            result = join(result, prepare(kind(x[i, j]), extra))
        if x.shape[1] >= step:
            for v in range(VECTORS):
                for q in range(lanes):
                    result = join(result, ends[v, q])
        return result

    return total


@tl.inline
def as_it_is(value, extra):
    return value


@tl.inline
def added(a, b):
    return a + b


@tl.inline
def multiplied(a, b):
    return a * b


@tl.inline
def greatest(a, b):
    return max(a, b)


@tl.inline
def least(a, b):
    return min(a, b)
