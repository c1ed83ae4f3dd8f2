"""Gathers elements by index, and scatters updates into a copy, by replacing elements or combining them.

Negative indices count from the end; an index out of range raises an error. Updates are applied in order.
"""

from __future__ import annotations

from collections.abc import Sequence

import tirlite as tl
from tirlite.ir import Add, And, Assert, Buffer, Builder, Expr, Max, Min, Mul, PrimFunc, Select, TensorType, i64
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.shapes import Extent, around, as_expr, elements, extents, is_at_most, nest, product, seen


@factory
def gather(X: TensorType, I: TensorType, Y: TensorType, *, axis: int) -> PrimFunc:
    """y = numpy.take(x, i, axis): the axes of i replace the axis."""
    outer, length, inner = around(X, axis)
    count = elements(I)

    @tl.kernel
    def gather(x: X, indices: I, y: tl.out[Y]):
        slices = tl.view(x, x.dtype[outer, length, inner])
        numbers = tl.view(indices, indices.dtype[count])
        results = tl.view(y, y.dtype[outer, count, inner])
        for piece in tl.parallel(outer * count):
            i = piece // count
            j = piece % count
            index = tl.i64(numbers[j])
            assert -length <= index < length, f"index {index} does not exist along an axis of {length}"
            at = index + length if index < 0 else index
            for q in range(inner):
                results[i, j, q] = slices[i, at, q]

    return gather.ir


@factory
def gather_elements(X: TensorType, I: TensorType, Y: TensorType, *, axis: int) -> PrimFunc:
    """y[..., k, ...] = x[..., i[..., k, ...], ...], with one index along `axis` for each element."""
    shape = extents(X)
    axis %= len(shape)
    b = Builder("gather_elements")
    x, numbers, y = b.param("x", X), b.param("indices", I), b.param("y", Y, out=True)
    check_inside(b, extents(Y), shape, axis)
    with nest(b, extents(Y)) as indices:
        at = checked(b, numbers[indices], shape[axis])
        b.store(y, indices, x[(*indices[:axis], at, *indices[axis + 1 :])])
    return b.build()


@factory
def gather_nd(X: TensorType, I: TensorType, Y: TensorType, *, batch_dims: int = 0) -> PrimFunc:
    """y[b, k] = x[b, *i[b, k]]: the last axis of i has index tuples; the first `batch_dims` axes are shared."""
    shape, (*outer, depth) = extents(X), extents(I)
    batches, rest = shape[:batch_dims], product(shape[batch_dims + depth :])
    count = product(outer[batch_dims:])
    b = Builder("gather_nd")
    x, numbers, y = b.param("x", X), b.param("indices", I), b.param("y", Y, out=True)
    source = seen(b, x, (product(batches), *shape[batch_dims : batch_dims + depth], rest))
    tuples = seen(b, numbers, (product(batches), count, depth))
    target = seen(b, y, (product(batches), count, rest))
    with nest(b, (product(batches), count)) as (i, j):
        ats = pointed(b, [tuples[i, j, level] for level in range(depth)], shape[batch_dims:])
        with b.for_("q", 0, rest) as q:
            b.store(target, (i, j, q), source[(i, *ats, q)])
    return b.build()


def check_inside(b: Builder, inner: Sequence[Extent], outer: Sequence[Extent], axis: int) -> None:
    """Asserts that `inner` is at most as large as `outer` along all axes but `axis`, unless that is proved."""
    for other, (extent, limit) in enumerate(zip(inner, outer, strict=True)):
        if other != axis and not is_at_most(extent, limit):
            message = f"axis {other} of the indices has {{}} elements, and there are {{}}"
            b.add(Assert(as_expr(extent) <= as_expr(limit), message, (as_expr(extent), as_expr(limit))))


def pointed(b: Builder, numbers: Sequence[Expr], shape: Sequence[Extent]) -> list[Expr]:
    """An index tuple into the first axes of a shape, checked and counted from the front."""
    return [checked(b, number, shape[level]) for level, number in enumerate(numbers)]


def checked(b: Builder, number: Expr, extent: Extent) -> Expr:
    """An index counted from the front, after an assertion that it is in range for this extent."""
    index = b.let("index", number.astype(i64))
    message = "index {} does not exist along an axis of {}"
    b.add(Assert(And(index >= 0 - extent, index < extent), message, (index, as_expr(extent))))
    return b.let("at", Select(index < 0, index + extent, index))


JOINS = {"add": Add, "mul": Mul, "max": Max, "min": Min}


@factory
def scatter_elements(
    X: TensorType, I: TensorType, U: TensorType, Y: TensorType, *, axis: int, reduction: str = "none"
) -> PrimFunc:
    """y = x with y[..., i[..., k, ...], ...] = u[..., k, ...]; `reduction` is "none", "add", "mul", "max" or "min"."""
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
    """y = x with y[*i[k]] = u[k], where the last axis of i has index tuples; see `scatter_elements`."""
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
