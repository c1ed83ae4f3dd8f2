"""Computes rsqrt of an f64 Term, as an f64 Term."""

from __future__ import annotations

from tirlite.ir.formula import Term
from tirlite.ir.functions.pairs import product_of


def rsqrt(x: Term) -> Term:
    """1 / sqrt(x); both roundings are made good for."""
    is_tiny, is_huge = x < 2.0**-500, x > 2.0**500
    moved = x * is_tiny.where(x.like(2.0**600), is_huge.where(x.like(2.0**-600), 1.0))
    root = moved.sqrt()
    square = product_of(root, root)
    lacking = ((moved - square.high) - square.low) / (2.0 * root)
    inverse = 1.0 / root
    back = product_of(inverse, root)
    rest = (((1.0 - back.high) - back.low) - inverse * lacking) * inverse
    result = inverse + rest.equals(rest).where(rest, 0.0)
    return result * is_tiny.where(x.like(2.0**300), is_huge.where(x.like(2.0**-300), 1.0))
