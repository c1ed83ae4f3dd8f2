"""Finds the element of an operand that goes with one of a result, which a kernel sees in a shape of its own."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.ir import Expr, const, i64
from tirlite.kernels.operators.shapes import Axis, Extent, is_one, is_same, product


def place(axes: Sequence[Axis], shape: Sequence[Extent], indices: Sequence[Expr]) -> tuple[Expr, ...] | None:
    """The indices of the axes that operand 0 has, at `indices` of a box of `shape`, which has the elements of `axes`.

    None where extents over dims do not tell.
    """
    found: list[Expr] = []
    for number, axis in enumerate(axes):
        if axis.present[0]:
            inner = product(each.extent for each in axes[number + 1 :])
            index = _along(shape, indices, inner, axis.extent)
            if index is None:
                return None
            found.append(index)
    return tuple(found)


def _along(shape: Sequence[Extent], indices: Sequence[Expr], inner: Extent, extent: Extent) -> Expr | None:
    """The index along an axis with so many elements behind each of its indices."""
    behind = [product(shape[axis:]) for axis in range(len(shape) + 1)]
    cut = next((axis for axis, each in enumerate(behind) if is_same(each, inner)), None)
    if cut is None:
        return _by_division(shape, behind, indices, inner, extent)
    outer = product((extent, inner))
    first = next((axis for axis in range(cut + 1) if is_same(behind[axis], outer)), None)
    if first is not None:
        return _number(shape[first:cut], indices[first:cut])
    return _round_again(shape[:cut], indices[:cut], extent)


def _number(shape: Sequence[Extent], indices: Sequence[Expr]) -> Expr:
    """The number of an element in a box."""
    total: Expr | None = None
    for extent, index in zip(shape, indices, strict=True):
        if not is_one(extent):
            total = index if total is None else total * extent + index
    return const(0, i64) if total is None else total


def _round_again(shape: Sequence[Extent], indices: Sequence[Expr], period: Extent) -> Expr | None:
    """The number of an element in a box, which begins anew after `period`: what only adds whole periods is left out."""
    if not isinstance(period, int) or not period:
        return None
    total: Expr | None = None
    for axis, index in enumerate(indices):
        stride = product(shape[axis + 1 :])
        if not isinstance(stride, int):
            return None
        if stride % period and not is_one(shape[axis]):
            term = index if stride == 1 else index * stride
            total = term if total is None else total + term
    return const(0, i64) if total is None else total % period


def _by_division(
    shape: Sequence[Extent], behind: Sequence[Extent], indices: Sequence[Expr], inner: Extent, extent: Extent
) -> Expr | None:
    """The index where the axis begins or ends within one of the box."""
    if not (isinstance(inner, int) and isinstance(extent, int) and inner and extent):
        return None
    units = [each if isinstance(each, int) and each else 0 for each in behind]
    cut = next(axis for axis, each in enumerate(units) if each and inner % each == 0)
    steps = inner // units[cut]
    number = _round_again(shape[:cut], indices[:cut], steps * extent)
    return number if number is None or steps == 1 else number // steps
