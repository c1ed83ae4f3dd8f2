"""Padding: with a constant, the outermost element, a mirror image, or what is at the other end."""

from __future__ import annotations

from functools import reduce

from tirlite.ir import And, Builder, Call, Expr, Max, Min, Op, PrimFunc, TensorType, const
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.nest import nest
from tirlite.kernels.operators.shapes import Extent, as_expr, extents


@factory
def pad(
    X: TensorType,
    Y: TensorType,
    *,
    before: tuple[Extent, ...],
    after: tuple[Extent, ...],
    mode: str = "constant",
    value: float = 0,
) -> PrimFunc:
    """x with elements added before and behind each axis; `mode` is "constant", "edge", "reflect" or "wrap"."""
    b = Builder("pad")
    x, y = b.param("x", X), b.param("y", Y, out=True)
    shape = [as_expr(extent) for extent in extents(X)]
    with nest(b, extents(Y)) as indices:
        moved = [
            b.let(f"at{axis}", index - start) for axis, (index, start) in enumerate(zip(indices, before, strict=True))
        ]
        if mode == "constant":
            filler = const(value if X.dtype.is_float else int(value), X.dtype)
            inside = [part for at, extent in zip(moved, shape, strict=True) for part in (at >= 0, at < extent)]
            element = x[tuple(moved)]
            if inside:
                element = Call(X.dtype, Op.IF_THEN_ELSE, (reduce(And, inside), element, filler))
            b.store(y, indices, element)
        else:
            b.store(y, indices, x[tuple(_inside(at, extent, mode) for at, extent in zip(moved, shape, strict=True))])
    return b.build()


def _inside(at: Expr, extent: Expr, mode: str) -> Expr:
    """The index of the element that stands for the one at `at`."""
    last = extent - 1
    if mode == "edge":
        return Min(Max(at, as_expr(0)), last)
    if mode == "wrap":
        return at % extent
    # A mirror at each end: the image has a period of twice the way between them.
    period = Max(last * 2, as_expr(1))
    folded = at % period
    return Min(folded, period - folded) if not _is_one(extent) else as_expr(0)


def _is_one(extent: Expr) -> bool:
    return getattr(extent, "value", None) == 1
