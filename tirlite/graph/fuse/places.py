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
    last = next((axis for axis, each in enumerate(behind) if is_same(each, inner)), None)
    if last is not None:
        outer = product((extent, inner))
        first = next((axis for axis in range(last + 1) if is_same(behind[axis], outer)), None)
        if first is not None:
            return _number(shape[first:last], indices[first:last])
    return _by_division([*shape], behind, indices, inner, extent)


def _number(shape: Sequence[Extent], indices: Sequence[Expr]) -> Expr:
    """The number of an element in a box."""
    total: Expr = const(0, i64)
    for at, (extent, index) in enumerate(zip(shape, indices, strict=True)):
        if not is_one(extent):
            total = index if at == 0 or _is_zero(total) else total * extent + index
    return total


def _is_zero(value: Expr) -> bool:
    return getattr(value, "value", None) == 0


def _by_division(
    shape: Sequence[Extent], behind: Sequence[Extent], indices: Sequence[Expr], inner: Extent, extent: Extent
) -> Expr | None:
    if not (isinstance(inner, int) and isinstance(extent, int) and inner and extent):
        return None
    if not all(isinstance(each, int) and each for each in behind):
        return None
    cut = next(axis for axis, each in enumerate(behind) if isinstance(each, int) and inner % each == 0)
    unit = behind[cut]
    assert isinstance(unit, int)
    period = inner // unit * extent
    total: Expr | None = None
    for axis in range(cut):
        step = behind[axis + 1]
        assert isinstance(step, int)
        stride = step // unit
        # What comes round again with the whole axis does not show in it.
        if stride % period and not is_one(shape[axis]):
            term = indices[axis] if stride == 1 else indices[axis] * stride
            total = term if total is None else total + term
    if total is None:
        return const(0, i64)
    return (total if inner == unit else total // (inner // unit)) % extent
