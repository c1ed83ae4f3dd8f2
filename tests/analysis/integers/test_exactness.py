"""Indices over scalar parameters, which may be anything: what wraps around on the way is not taken for its sum."""

from __future__ import annotations

import numpy as np
import pytest
from every import every

import tirlite as tl
from tirlite.analysis.integers.array_bounds import array_bounds, is_exact_index, is_exact_size
from tirlite.analysis.integers.extents import Extents
from tirlite.interp import interpret
from tirlite.ir import i64
from tirlite.schedules.auto import ScheduleTemporaries
from tirlite.sizes import Dim, Size, maximum, minimum

n, m = Dim("n", min=0), Dim("m")
s = Dim("s", min=i64.min, max=i64.max)
few = Dim("few", min=-8, max=1 << 20)


@every(
    "size, is_exact, is_exact_in_bounds",
    [
        (i64.max, True, True),
        (i64.max + 1, False, True),
        (1 << 64, False, False),
        (s + 0, True, True),
        (s + 1, False, True),
        (4 * s, False, False),
        (s - s // 2, False, True),
        (s * n, False, False),
        (maximum(s, n), True, True),
        (minimum(s, 4), True, True),
        (maximum(s + 1, n), False, True),
        (maximum(s, 0) + 1, False, True),
        (few * few, True, True),
        (n * n, False, False),
        (n * m * 1024, True, True),
        ((n * m + 7) // 8 * 8, True, True),
        (n // 2 * m, True, True),
        (n * 2**20, False, False),
        (maximum(n * 2**64, 8), False, False),
        (maximum(n + 1, m) * m, True, True),
    ],
)
def test_scalars_and_products_of_no_array_wrap_around(size: Size, is_exact: bool, is_exact_in_bounds: bool) -> None:
    """Arrays that exist bound their extents; of an index, what wraps around once is out of bounds."""
    arrays = array_bounds([4 * n * m, 8 * m * m])
    assert (is_exact_size(size, arrays), is_exact_index(size, arrays)) == (is_exact, is_exact_in_bounds)


@every(
    "bytes_, is_exact",
    [
        (4 * n * m, True),
        (8 * n * m * m + 64, True),
        (maximum(4 * n * m, 64 * n), True),
        (maximum(0, m) * n, True),
        (4 * n * n, False),
        (4 * n * m * n, False),
        (n * m - n, False),
        (4 * n * m * maximum(s, 0), False),
    ],
)
def test_what_arrays_hold_does_not_wrap_around(bytes_: Size, is_exact: bool) -> None:
    """An array that may be empty along one axis may be of any length along two others."""
    assert is_exact_size(n * m, array_bounds([bytes_])) is is_exact


def test_of_what_an_array_holds_many_times_there_is_less() -> None:
    assert not is_exact_size(n * 2**20, array_bounds([4 * n]))
    assert is_exact_size(n * 2**20, array_bounds([4 * n * 2**18]))
    assert is_exact_size(n * m * 2**30, array_bounds([2**20 * n * m]))


def test_an_empty_array_tells_nothing_of_its_other_extents() -> None:
    half = n * n // 2
    assert is_exact_size(half + 1, array_bounds([4 * m * half]))
    assert not is_exact_size(half + 1, array_bounds([4 * n * half]))


@pytest.mark.parametrize("around", ["if n > 9", "for i in range(n)", None])
def test_every_run_has_what_is_allocated_under_no_condition(around: str | None) -> None:
    declaration = "t = tl.alloc(tl.f32[n, n])"
    stmts = declaration if around is None else f"{around}:\n        {declaration}"
    func = tl.parse(f'n = tl.dim("n")\n\n@tl.kernel\ndef f(x: tl.f32[n]):\n    {stmts}\n')
    extents = Extents(func)
    (dim,) = extents.given.values()
    assert is_exact_size(dim * dim, extents.arrays) is (around is None)


length = tl.dim("length")


@tl.kernel
def turned(x: tl.i64[length], s: tl.i64, y: tl.out[tl.i64[length]]):
    a = tl.alloc(tl.i64[length])
    b = tl.alloc(tl.i64[length])
    for i in range(length):
        a[i] = x[i] * 10
    four = 4 * s
    for i in range(length):
        b[i] = a[(four // 4 - s + i) % length]
    for i in range(length):
        y[i] = b[i] + 1


@pytest.mark.parametrize("s", [5, (1 << 62) + 1])
def test_what_wraps_around_is_not_read_in_place(s: int) -> None:
    """At the second `s` the indices are 2, 0 and 1: in place, element 0 would be overwritten before it is read."""
    x = np.arange(3)
    assert turned.interpret(x, s).tolist() == turned(x, s).tolist()


def test_constant_factors_wrap_around() -> None:
    """The third loop looks like one over all of t, and is one over nothing."""
    func = tl.parse("""
n = tl.dim("n")

@tl.kernel
def kept(x: tl.f32[n], y: tl.f32[n]):
    t = tl.alloc(tl.f32[n])
    for i in range(n):
        t[i] = x[i]
    for i in range(n):
        y[i] = t[i]
    for i in range(min(n * 4611686018427387904 * 4, n)):
        t[i] = 0
    for i in range(n):
        y[i] = y[i] + t[i]
""")
    x, y = np.arange(3, dtype=np.float32), np.zeros(3, np.float32)
    for each in (tl.passes.SplitWebs(), ScheduleTemporaries()):
        interpret(each(func), {**dict(zip(func.params, (x, y), strict=True)), func.dims[0]: 3})
        assert y.tolist() == [0, 2, 4]
