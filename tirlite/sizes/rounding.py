"""Rounds sizes up to whole pieces."""

from __future__ import annotations

from tirlite.sizes.poly import Size, SizeLike, as_size, bounds_of, quotient
from tirlite.sizes.prove import Proof, prove_divides


def ceildiv(a: SizeLike, b: SizeLike) -> Size:
    """`a / b`, rounded up. Raises KernelError where `b` is 0."""
    dividend, divisor = as_size(a), as_size(b)
    if isinstance(dividend, int) and isinstance(divisor, int) and divisor:
        return -(-dividend // divisor)
    if bounds_of(divisor).positive:
        return quotient(dividend + divisor - 1, divisor)
    return -quotient(-dividend, divisor)


def round_up(a: SizeLike, multiple: SizeLike) -> Size:
    """The least multiple of a positive `multiple` that is at least `a`; `a` itself where it is proved to be one."""
    if isinstance(multiple, int) and multiple:
        if isinstance(a, int):
            return -(-a // multiple) * multiple
        if prove_divides(multiple, a) is Proof.YES:
            return as_size(a)
    return ceildiv(a, multiple) * as_size(multiple)
