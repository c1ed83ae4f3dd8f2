"""The small parts of sums of products: how a term is added, and how a sum is stored."""

from __future__ import annotations

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType


@tl.inline
def fused(a, b, c):
    return tl.fma(a, b, c)


@tl.inline
def in_steps(a, b, c):
    return a * b + c


def multiply_add(kind: DType) -> Inline:
    """`a * b + c`, rounded once for floats."""
    return fused if kind.is_float else in_steps


@tl.inline
def plain(y, u, i, j, total, extra):
    y[u, i, j] = y.dtype(total)
