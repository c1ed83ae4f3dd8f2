"""`tl.masked`: lanes that are off access nothing, and a load gives 0 there; interpreter, code and debug code agree."""

from __future__ import annotations

import numpy as np
import pytest
from fuzz.guard import guarded

import tirlite as tl
from tirlite.diag import KernelIndexError, KernelRunError

n, m = tl.dims("n m")

TYPES = ("bool_", "f16", "f32", "u64")
TEXT = """
n, m = tl.dims("n m")

@tl.kernel
def f(x: tl.{dtype}[m, n], at: tl.i32[8], on: tl.bool_[8], s: tl.i64, y: tl.{dtype}[n], z: tl.{dtype}[8]):
    mask = on[tl.ramp(0, 1, 8)]
    z[tl.ramp(0, 1, 8)] = x[s, tl.masked({index}, mask)]
    y[tl.masked({index}, mask)] = x[s, tl.masked(tl.ramp(0, 1, 8), mask)]
"""


def results(func: tl.ir.PrimFunc, arguments: list[object]) -> list[list[np.ndarray]]:
    """What the interpreter, code and debug code leave in the arrays."""
    found = []
    for run in (tl.compile(func).interpret, tl.compile(func), tl.compile(func, debug=True)):
        given = [guarded(each, at_end=True) if isinstance(each, np.ndarray) else each for each in arguments]
        run(*given)
        found.append([each for each in given if isinstance(each, np.ndarray)])
    return found


@pytest.mark.parametrize("index", ["tl.ramp(s * 0 - 2, 1, 8)", "at[tl.ramp(0, 1, 8)]"])
def test_lanes_that_are_off_touch_nothing(index: str) -> None:
    """Of neighbours that begin before the array and end behind it, and of elements anywhere."""
    lanes = np.arange(8)
    places = lanes - 2 if "at" not in index else np.int32([0, 9, -4, 3, 3, 1, 100, 2])
    wanted = np.array([False, False, True, True, False, True, False, False])
    draw = np.random.default_rng(0)
    for dtype in TYPES:
        func = tl.parse(TEXT.format(dtype=dtype, index=index))
        kind = getattr(tl, dtype)
        x = draw.integers(0, 2 if kind.is_bool else 100, (2, 8)).astype(kind.numpy)
        for mask in (wanted & (places >= 0) & (places < 8), np.zeros(8, np.bool_)):
            # Where no lane is on, not even a row outside of the array is an access.
            row = 1 if mask.any() else 7
            y, z = np.full(8, 1, kind.numpy), np.full(8, 1, kind.numpy)
            told, code, debug = results(func, [x, np.int32(places), mask, row, y, z])
            expected_z, expected_y = np.zeros(8, kind.numpy), y.copy()
            if mask.any():
                expected_z[mask] = x[row][places[mask]]
                expected_y[places[mask]] = x[row][lanes[mask]]
            np.testing.assert_array_equal(told[-1], expected_z, dtype)
            np.testing.assert_array_equal(told[-2], expected_y, dtype)
            for ours, other in zip(told, code, strict=True):
                np.testing.assert_array_equal(ours, other, dtype, strict=True)
            for ours, other in zip(told, debug, strict=True):
                np.testing.assert_array_equal(ours, other, dtype, strict=True)


def test_lanes_that_are_on_are_checked() -> None:
    func = tl.parse(TEXT.format(dtype="f32", index="at[tl.ramp(0, 1, 8)]"))
    places, mask = np.int32([0, 99, 8, 1, 2, 3, 4, 5]), np.array([True, False, True, True, True, True, True, True])
    messages = set()
    for run in (tl.compile(func).interpret, tl.compile(func), tl.compile(func, debug=True)):
        x, y, z = np.ones((1, 8), np.float32), np.zeros(8, np.float32), np.zeros(8, np.float32)
        with pytest.raises(KernelIndexError) as raised:
            run(x, places, mask, 0, y, z)
        messages.add(str(raised.value))
    (message,) = messages
    assert "index 8 is out of bounds for axis 1 of `x` with extent 8" in message


@tl.kernel
def half_written(x: tl.f32[4], on: tl.bool_[4], y: tl.f32[4], z: tl.f32[4]):
    t = tl.alloc(tl.f32[4])
    t[0] = 1.0
    t[2] = 3.0
    taken = t[tl.masked(tl.ramp(0, 1, 4), on[tl.ramp(0, 1, 4)])]
    y[tl.ramp(0, 1, 4)] = taken
    u = tl.alloc(tl.f32[4])
    u[tl.masked(tl.ramp(0, 1, 4), on[tl.ramp(0, 1, 4)])] = x[tl.ramp(0, 1, 4)]
    z[tl.masked(tl.ramp(0, 1, 4), on[tl.ramp(0, 1, 4)])] = u[tl.ramp(0, 1, 4)]


def test_what_is_off_is_no_poison() -> None:
    mask = np.array([True, False, True, False])
    for run in (half_written.interpret, half_written, tl.compile(half_written, debug=True)):
        x, y, z = np.float32([5, 6, 7, 8]), np.full(4, 9, np.float32), np.full(4, 9, np.float32)
        run(x, mask, y, z)
        assert y.tolist() == [1, 0, 3, 0]
        assert z.tolist() == [5, 9, 7, 9]


def test_what_is_on_may_be_poison() -> None:
    mask = np.array([True, True, False, False])
    messages = []
    for run in (half_written.interpret, tl.compile(half_written, debug=True)):
        with pytest.raises(KernelRunError) as raised:
            run(np.ones(4, np.float32), mask, np.ones(4, np.float32), np.ones(4, np.float32))
        messages.append(str(raised.value))
    assert "the value stored into `y` depends on `t[0]`" in messages[0]
    assert messages[0] == messages[1]


@tl.kernel
def turned(x: tl.i32[49, 32], factor: tl.f32[()], y: tl.out[tl.u8[32, 49]]):
    for j in range(32):
        for i in range(49):
            y[j, i] = tl.u8(tl.f32(x[i, j]) * factor[()])


def test_one_byte_of_a_vector_is_stored_alone() -> None:
    x = np.random.default_rng(0).integers(0, 256, (49, 32), np.int32)
    assert "tl.masked" in str(turned.lowered) or tl.Target.host().processor.vector_bytes < 64
    np.testing.assert_array_equal(turned(x, np.asarray(1, np.float32)), x.T)
