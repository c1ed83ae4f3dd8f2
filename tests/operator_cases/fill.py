"""Cases of the kernels of `tirlite.kernels.operators.arrange`."""

from __future__ import annotations

import numpy as np
from operator_cases.case import Case, integers, joined

import tirlite as tl
from tirlite.kernels.operators.arrange import one_hot, range_

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
