"""Tensors made of few numbers: even steps, and ones where an index points."""

from __future__ import annotations

import tirlite as tl
from tirlite.ir import PrimFunc, TensorType
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.shapes import around, extents


@factory
def range_(S: TensorType, D: TensorType, Y: TensorType) -> PrimFunc:
    """y[i] = start + i * delta, as many as y holds."""
    (count,) = extents(Y)

    @tl.kernel
    def range_(start: S, delta: D, y: tl.out[Y]):
        for i in range(count):
            y[i] = start[()] + y.dtype(i) * delta[()]

    return range_.ir.replaced(name="range")


@factory
def one_hot(I: TensorType, V: TensorType, Y: TensorType, *, axis: int = -1) -> PrimFunc:
    """y[..., k, ...] = values[1] where i[..., ...] is k, else values[0]; `axis` is that of k."""
    outer, depth, inner = around(Y, axis)

    @tl.kernel
    def one_hot(indices: I, values: V, y: tl.out[Y]):
        numbers = tl.view(indices, indices.dtype[outer, inner])
        results = tl.view(y, y.dtype[outer, depth, inner])
        for i in tl.parallel(outer):
            for k in range(depth):
                for q in range(inner):
                    index = tl.i64(numbers[i, q])
                    at = index + depth if index < 0 else index
                    results[i, k, q] = values[1] if at == k else values[0]

    return one_hot.ir
