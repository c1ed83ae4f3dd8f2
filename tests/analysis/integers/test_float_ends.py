"""The ends of floats that become integers hold whatever the numbers are, and however they are rounded."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite.analysis.facts import Facts
from tirlite.ir import Cast, i64, walk
from tirlite.rewrite import Normalize
from tirlite.sizes import evaluate
from tirlite.sizes.unknown import ends

SOURCE = """
n = tl.dim("n")

@tl.kernel
def f(x: tl.f64, k: tl.i32, table: tl.u8[n], y: tl.i64[1]):
    y[0] = tl.i64({})
"""

FLOATS = [0.0, -0.0, 0.3, -0.5, -1.5, 255.7, 3e7, -(2.0**70), 2.0**70, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize(
    "float_of",
    [
        "min(max(x, 0.0), tl.f64(n - 1))",
        "min(max(tl.f32(x), 0), tl.f32(n - 1))",
        "tl.round(min(max(tl.f32(x), -2.5), tl.f32(n)))",
        "max((tl.f32(n) + 0.5) * (tl.f32(n) / 3) - 0.5, 16777219.0)",
        "tl.ceil(min(tl.f32(x), tl.f32(n)))",
        "tl.f32(tl.f64(n) - 16777219.0)",
        "tl.f32(n) - 16777219.0",
        "tl.trunc(tl.f32(n) * max(tl.f32(k), 0) - 0.5)",
        "tl.floor(min(tl.f32(k), 3) + min(max(tl.f32(x), 0), tl.f32(n + 2)))",
    ],
)
def test_what_becomes_of_floats_lies_between_the_ends(float_of: str) -> None:
    func = Normalize()(tl.parse(SOURCE.format(float_of)))
    casts = [each for each in walk(func) if isinstance(each, Cast) and each.dtype == i64]
    cast = next(each for each in casts if each.value.dtype.is_float)
    space = Facts(func).space
    low, high = ends(space.size(cast))
    assert low is not None or high is not None
    (dim,) = (space.extents.sizes[each] for each in func.params[2].shape)  # type: ignore[union-attr]
    kernel, y = tl.compile(func, schedule=None), np.zeros(1, np.int64)
    for n in (1, 2, 7, 2**24 - 1, 2**24 + 1, 2**24 + 3, 2**25 + 3):
        table = np.empty(n, np.uint8)
        for x in FLOATS:
            for k in (-3, 0, 5, 2**31 - 1):
                kernel(x, k, table, y)
                values = {dim: n}
                assert low is None or evaluate(low, values) <= y[0], (n, x, k)
                assert high is None or y[0] <= evaluate(high, values), (n, x, k)
