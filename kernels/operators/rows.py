"""A row of a matrix joined to one number."""

from __future__ import annotations

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType


def row_total(source: DType, kind: DType, prepare: Inline, join: Inline, start: float) -> Inline:
    """`total(x, i, extra)`: all of x[i, :] joined, from `start` on; elements are of type `source`, results of `kind`.

    `prepare(value, extra)` comes before `join`, which is one of those below. The order of the elements is not kept.
    """

    @tl.inline
    def total(x, i, extra):
        result = kind(start)
        for j in tl.reduce(x.shape[1]):
            value = prepare(kind(x[i, j]), extra)
            if tl.static(join is added):
                result += value
            elif tl.static(join is multiplied):
                result *= value
            elif tl.static(join is greatest):
                result = max(result, value)
            else:
                result = min(result, value)
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
