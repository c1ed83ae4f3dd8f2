"""`tl.checked`: plain code stops at an index out of bounds, with the words of the interpreter and after its stores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from told import told_by

import tirlite as tl
from tirlite.diag import KernelIndexError
from tirlite.ir import Builder, Call, Op, PrimFunc, Ramp, const, f32, i64
from tirlite.rewrite import CheckBounds, Normalize

n, m, k = tl.dims("n m k")


def checked(func: PrimFunc) -> PrimFunc:
    return CheckBounds()(Normalize()(func))


def told(run: Callable[..., object], *arguments: object) -> str:
    with pytest.raises(KernelIndexError) as raised:
        run(*arguments)
    return str(raised.value)


def assert_told_alike(func: PrimFunc, *arguments: np.ndarray, workers: int = 1) -> str:
    """Runs a function by the interpreter and by code that is checked; both stop and leave the same arrays."""
    ours, theirs = ([np.array(each) for each in arguments] for _ in range(2))
    target = tl.Target.host(workers=workers)
    message = told(tl.compile(checked(func), target=target), *ours)
    assert message == told(tl.compile(func).interpret, *theirs)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)
    return message


@tl.kernel
def gathered(x: tl.f32[n], at: tl.i32[m], y: tl.f32[m]):
    for i in range(m):
        y[i] = x[at[i]]


def test_an_index_from_memory() -> None:
    message = assert_told_alike(gathered.ir, np.ones(4, np.float32), np.int32([3, 0, 4, -1]), np.zeros(4, np.float32))
    assert "index 4 is out of bounds for axis 0 of `x` with extent 4" in message


def test_what_is_in_bounds_runs_to_its_end() -> None:
    y = np.zeros(2, np.float32)
    tl.compile(checked(gathered.ir))(np.float32([1, 2, 3]), np.int32([2, 0]), y)
    assert y.tolist() == [3, 1]


def test_indices_of_a_store_come_before_its_value() -> None:
    @tl.kernel
    def moved(x: tl.f32[n], at: tl.i64[2], y: tl.f32[n]):
        y[at[at[0]]] = x[at[1]]

    x, y = np.ones(3, np.float32), np.zeros(3, np.float32)
    assert "of `x`" in assert_told_alike(moved.ir, x, np.int64([0, 3]), y)
    assert "of `at`" in assert_told_alike(moved.ir, x, np.int64([2, 3]), y)


def test_the_first_axis_that_is_wrong_is_told() -> None:
    @tl.kernel
    def corner(x: tl.f32[n, m], i: tl.i64[3], y: tl.f32[1]):
        y[0] = x[i[0], i[1]] if i[2] > 0 else 0

    x, y = np.ones((2, 3), np.float32), np.zeros(1, np.float32)
    assert "axis 1" in assert_told_alike(corner.ir, x, np.int64([1, 3, 1]), y)
    assert "axis 0" in assert_told_alike(corner.ir, x, np.int64([-1, 3, 1]), y)
    tl.compile(checked(corner.ir))(x, np.int64([9, 9, 0]), y)


def test_of_workers_the_lowest_iteration_tells() -> None:
    @tl.kernel
    def spread(x: tl.f32[n], at: tl.i32[m], y: tl.f32[m]):
        for i in tl.parallel(m):
            y[i] = x[at[i]]

    at = np.zeros(300_000, np.int32)
    at[[250_000, 200_000]] = 5, 7
    kernel = tl.compile(checked(spread.ir), target=tl.Target.host(workers=2))
    assert "index 7 " in told(kernel, np.ones(4, np.float32), at, np.zeros(len(at), np.float32))


@pytest.mark.parametrize("stride", [1, 2])
def test_a_vector_stops_where_one_lane_is_outside(stride: int) -> None:
    b = Builder("f")
    x, at, y = b.param("x", f32[n]), b.param("at", i64[1]), b.param("y", f32[4])
    lanes = Ramp(const(0, i64), const(1, i64), 4)
    index = Ramp(at[0], const(stride, i64), 4)
    b.store(y, lanes, x[Call(index.dtype, Op.CHECKED, (index,))])
    func = b.build()
    y = np.zeros(4, np.float32)
    tl.compile(func)(np.arange(8, dtype=np.float32), np.int64([1]), y)
    assert y.tolist() == [1 + stride * lane for lane in range(4)]
    message = assert_told_alike(func, np.arange(8, dtype=np.float32), np.int64([8 - 2 * stride]), y)
    assert "index 8 is out of bounds" in message


def test_callees_stop_their_callers() -> None:
    @tl.kernel
    def pick(x: tl.f32[n], at: tl.i32[m], y: tl.f32[m]):
        tl.call(gathered, x, at, y)
        y[0] = 7

    assert_told_alike(pick.ir, np.ones(2, np.float32), np.int32([1, 2]), np.zeros(2, np.float32))


def test_an_author_writes_it_too() -> None:
    @tl.kernel
    def one(x: tl.f32[n], at: tl.i64[1], y: tl.f32[1]):
        y[0] = x[tl.checked(at[0])] + tl.checked(at[0])

    assert "index 3 " in told(one, np.ones(3, np.float32), np.int64([3]), np.zeros(1, np.float32))
    y = np.zeros(1, np.float32)
    one(np.ones(3, np.float32), np.int64([2]), y)
    assert y.tolist() == [3]


@pytest.mark.parametrize("kind", ["i32", "i64"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_floats_that_are_no_index_count_as_what_they_saturate_to(dtype: str, kind: str) -> None:
    func = tl.parse(f"""
n, m = tl.dims("n m")

@tl.kernel
def counts(x: tl.{dtype}[n], y: tl.{dtype}[n], h: tl.i32[m, m]):
    for i in range(n):
        h[tl.{kind}(x[i] * 2), tl.{kind}(y[i])] += 1
""")
    kernel = tl.compile(func)
    places = (0.4, -0.4, np.nan, 1.9, 2.0, -1.0, np.inf, -np.inf, 1e30, -1e30, -(2.0**31), 2.0**31, 2.0**62, -(2.0**63))
    for one in places:
        for other in places:
            x, y = (np.array([0.5, each, 1.5], func.params[0].dtype.numpy) for each in (one, other))
            ours, theirs = np.zeros((4, 4), np.int32), np.zeros((4, 4), np.int32)
            assert told_by(kernel, (x, y, ours)) == told_by(kernel.interpret, (x, y, theirs))
            np.testing.assert_array_equal(ours, theirs)
