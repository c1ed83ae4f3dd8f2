"""Extents of parameters, evaluated when a kernel is called."""

from __future__ import annotations

import numpy as np
import pytest
from every import every

import tirlite as tl
from tirlite.ir import Cast, IntImm, Max, Min, Neg, Select, TruncDiv, TruncMod, Var, f32, i8, i32, i64, u8, u64
from tirlite.ir.builder import Builder
from tirlite.ir.size import value_of

n = Var("n")


@every(
    "extent, value",
    [
        (n + 1, 8),
        (2 * n - 3, 11),
        (n // 2, 3),
        ((0 - n) // 2, -4),
        ((0 - n) % 4, 1),
        (n // 0, 0),
        (n % 0, 0),
        (TruncDiv(Neg(n), IntImm(i64, 2)), -3),
        (TruncMod(Neg(n), IntImm(i64, 4)), -3),
        (Min(n, IntImm(i64, 5)), 5),
        (Max(n, IntImm(i64, 5)), 7),
        (Cast(i64, Cast(i32, n)), 7),
        (n * 2**62 * 4, 7 * 2**64),
        (Cast(i64, Cast(u8, n * 100)), 188),
        (Cast(i64, Cast(i8, n) * IntImm(i8, 20)), -116),
        (Cast(i64, Cast(u64, n) - IntImm(u64, 8)), -1),
    ],
)
def test_an_extent_is_an_exact_integer(extent: tl.ir.Expr, value: int) -> None:
    assert value_of(extent, {n: 7}) == value


def test_rows_are_as_long_as_the_kernel_takes_them_to_be() -> None:
    func = tl.parse("""
n = tl.dim("n")

@tl.kernel
def spread(x: tl.i32[n], y: tl.i32[2, tl.i64(tl.u8(n))]):
    for i in range(2):
        for j in range(tl.i64(tl.u8(n))):
            y[i, j] = x[j + i]
""")
    x, y = np.arange(300, dtype=np.int32), np.zeros((2, 44), np.int32)
    tl.compile(func)(x, y)
    assert y.tolist() == [[*range(44)], [*range(1, 45)]]
    with pytest.raises(tl.CallValueError, match="axis 1 of `y` must be"):
        tl.compile(func)(x, np.zeros((2, 300), np.int32))


def test_an_extent_of_another_form_is_refused_when_the_kernel_is_made() -> None:
    b = Builder("odd")
    k = b.param("k", i64)
    b.param("x", f32[Select(k > 3, k, IntImm(i64, 3))])
    with pytest.raises(tl.KernelError, match="an extent of `x` contains Select"):
        tl.compile(b.build())


def test_a_long_extent_is_no_deep_recursion() -> None:
    extent = n
    for _ in range(10_000):
        extent = extent + 1
    assert value_of(extent, {n: 7}) == 10_007
