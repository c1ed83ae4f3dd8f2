"""Turns extents as users write them into sizes: integers, dims, sizes, and expressions of dims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import SupportsIndex, TypeAlias

from tirlite.diag import GraphMessage, Span
from tirlite.ir import Expr, i64
from tirlite.ir.size import size_over_dims
from tirlite.show import shown
from tirlite.sizes import Dim, Poly, Proof, Size, as_size, evaluate, from_sympy, prove_eq
from tirlite.sizes.poly import is_of_sympy

Extent: TypeAlias = "SupportsIndex | Dim | Poly | Expr"
Shape: TypeAlias = "tuple[Size, ...]"


class BadGraphExtent(GraphMessage):
    """A graph was given an extent that is neither a 64-bit integer nor an integer expression of dims.

    Example: `g.reshape(x, (2.5, 3))`.
    """

    title = "{given} is not an extent"
    help = "an extent is an integer, a dim, or an expression of dims such as `2 * n`"


def size_of(extent: Extent, span: Span | None = None) -> Size:
    """The size that a user's extent stands for. It may be negative; type rules check the extents of shapes."""
    if isinstance(extent, Dim | Poly):
        return as_size(extent)
    if is_of_sympy(extent):
        return from_sympy(extent, {})
    if isinstance(extent, Expr):
        size = size_over_dims(extent)
        if size is None:
            raise BadGraphExtent(str(extent), span=span).error()
        return size
    if isinstance(extent, bool):
        raise BadGraphExtent(repr(extent), span=span).error()
    try:
        size = index(extent)
    except TypeError:
        raise BadGraphExtent(shown(extent), span=span).error() from None
    if not i64.min <= size <= i64.max:
        raise BadGraphExtent(shown(size), span=span).error()
    return size


def shape_of(extents: Iterable[Extent], span: Span | None = None) -> Shape:
    """The sizes of several extents."""
    return tuple(size_of(extent, span) for extent in extents)


def is_equal(a: Size, b: Size) -> bool:
    """Whether the two are proved equal for all values of the dims."""
    return a == b or prove_eq(a, b) is Proof.YES


def product(sizes: Iterable[Size]) -> Size:
    """The product of the sizes, 1 if there are none."""
    result: Size = 1
    for size in sizes:
        result = result * size
    return result


def values(shape: Shape, binding: Mapping[Dim, int]) -> tuple[int, ...]:
    """The shape at a binding of its dims."""
    return tuple(evaluate(size, binding) for size in shape)
