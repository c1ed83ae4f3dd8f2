"""A copy of a tensor with some elements replaced, or joined with others, where indices point.

Indices may repeat: updates take effect in their order. Negative ones count from the end.
"""

from __future__ import annotations

from tirlite.ir import Add, Buffer, Builder, Expr, Max, Min, Mul, PrimFunc, TensorType
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.gather import check_inside, checked, pointed
from tirlite.kernels.operators.nest import nest, seen
from tirlite.kernels.operators.shapes import elements, extents, product

JOINS = {"add": Add, "mul": Mul, "max": Max, "min": Min}


@factory
def scatter_elements(
    X: TensorType, I: TensorType, U: TensorType, Y: TensorType, *, axis: int, reduction: str = "none"
) -> PrimFunc:
    """y = x, but y[..., i[..., k, ...], ...] = u[..., k, ...]; `reduction` is "none", "add", "mul", "max" or "min"."""
    shape = extents(X)
    axis %= len(shape)
    b = Builder("scatter_elements")
    x, numbers, updates, y = b.param("x", X), b.param("indices", I), b.param("updates", U), b.param("y", Y, out=True)
    check_inside(b, extents(U), shape, axis)
    _copied(b, x, y, X)
    with nest(b, extents(U), serial=True) as indices:
        at = checked(b, numbers[indices], shape[axis])
        _put(b, y, (*indices[:axis], at, *indices[axis + 1 :]), updates[indices], reduction)
    return b.build()


@factory
def scatter_nd(X: TensorType, I: TensorType, U: TensorType, Y: TensorType, *, reduction: str = "none") -> PrimFunc:
    """y = x, but y[*i[k]] = u[k], where the last axis of i holds tuples of indices; see `scatter_elements`."""
    shape, (*outer, depth) = extents(X), extents(I)
    rest, count = product(shape[depth:]), product(outer)
    b = Builder("scatter_nd")
    x, numbers, updates, y = b.param("x", X), b.param("indices", I), b.param("updates", U), b.param("y", Y, out=True)
    _copied(b, x, y, X)
    target = seen(b, y, (*shape[:depth], rest))
    tuples, rows = seen(b, numbers, (count, depth)), seen(b, updates, (count, rest))
    with nest(b, (count,), serial=True) as (k,):
        ats = pointed(b, [tuples[k, level] for level in range(depth)], shape)
        with b.for_("q", 0, rest) as q:
            _put(b, target, (*ats, q), rows[k, q], reduction)
    return b.build()


def _copied(b: Builder, x: Buffer, y: Buffer, tensor: TensorType) -> None:
    source, target = seen(b, x, (elements(tensor),)), seen(b, y, (elements(tensor),))
    with b.parallel("i", 0, elements(tensor)) as i:
        b.store(target, i, source[i])


def _put(b: Builder, y: Buffer, at: tuple[Expr, ...], value: Expr, reduction: str) -> None:
    if reduction != "none":
        kind = computed_in(value.dtype)
        value = JOINS[reduction](y[at].astype(kind), value.astype(kind)).astype(value.dtype)
    b.store(y, at, value)
