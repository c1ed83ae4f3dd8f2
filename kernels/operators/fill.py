"""Tensors made of few numbers: even steps, and ones where an index points."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.ir import PrimFunc, TensorType
from tirlite.kernels.operators.case import Case, integers, joined
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


n, m = tl.dims("n m")


def steps(start: float, delta: float, dtype: type):
    return lambda rng: (np.asarray(start, dtype), np.asarray(delta, dtype))


def one_hot_case(name: str, axis: int, result: tuple) -> Case:
    def reference(indices: np.ndarray, values: np.ndarray) -> np.ndarray:
        depth = np.arange(6).reshape(*(1,) * (axis % 3), 6, *(1,) * (2 - axis % 3))
        return np.where(np.expand_dims(indices % 6, axis) == depth, values[1], values[0])

    inputs = joined(integers(-6, 6, (3, 4)), lambda rng: (np.array([0, 5], np.float32),))
    types = (tl.i64[n, m], tl.f32[2], tl.f32[result])
    return Case(f"one_hot-{name}", lambda: one_hot(*types, axis=axis), inputs, reference)


CASES = (
    Case(
        "range-i64",
        lambda: range_(tl.i64[()], tl.i64[()], tl.i64[7]),
        steps(9, -2, np.int64),
        lambda start, delta: start + np.arange(7) * delta,
    ),
    Case(
        "range-f32",
        lambda: range_(tl.f32[()], tl.f32[()], tl.f32[7]),
        steps(0.5, 0.25, np.float32),
        lambda start, delta: (start + np.arange(7, dtype=np.float32) * delta).astype(np.float32),
    ),
    one_hot_case("last", -1, (n, m, 6)),
    one_hot_case("first", 0, (6, n, m)),
)
