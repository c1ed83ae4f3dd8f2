"""Tensors joined along an axis, and divided."""

from __future__ import annotations

from tirlite.ir import Builder, PrimFunc, TensorType
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.nest import seen
from tirlite.kernels.operators.shapes import Extent, around


@factory
def concat(*types: TensorType, axis: int) -> PrimFunc:
    """All operands one behind the other along an axis, in the last of `types`."""
    *given, result = types
    b = Builder("concat")
    sources = [b.param(f"x{number}", each) for number, each in enumerate(given)]
    y = b.param("y", result, out=True)
    outer, length, inner = around(result, axis)
    rows = seen(b, y, (outer, length * inner))
    parts = [seen(b, source, (outer, _width(each, axis))) for source, each in zip(sources, given, strict=True)]
    with b.parallel("i", 0, outer) as i:
        start: Extent = 0
        for part, each in zip(parts, given, strict=True):
            width = _width(each, axis)
            with b.for_("j", 0, width) as j:
                b.store(rows, (i, j + start), part[i, j])
            start = width + start
    return b.build()


@factory
def split(X: TensorType, *types: TensorType, axis: int) -> PrimFunc:
    """The operand cut along an axis into parts of `types`."""
    b = Builder("split")
    x = b.param("x", X)
    results = [b.param(f"y{number}", each, out=True) for number, each in enumerate(types)]
    outer, length, inner = around(X, axis)
    rows = seen(b, x, (outer, length * inner))
    parts = [seen(b, result, (outer, _width(each, axis))) for result, each in zip(results, types, strict=True)]
    with b.parallel("i", 0, outer) as i:
        start: Extent = 0
        for part, each in zip(parts, types, strict=True):
            width = _width(each, axis)
            with b.for_("j", 0, width) as j:
                b.store(part, (i, j), rows[i, j + start])
            start = width + start
    return b.build()


def _width(tensor: TensorType, axis: int) -> Extent:
    _, length, inner = around(tensor, axis)
    return length * inner
