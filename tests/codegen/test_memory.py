"""Buffers in native code: views, vectors, strides, volatile accesses."""

from __future__ import annotations

import numpy as np
import pytest
from effort import effort
from fuzz.guard import guarded

import tirlite as tl
from tirlite.codegen import Effort, lower
from tirlite.ir import Broadcast, Cast, IntImm, Ramp, bool_, f32, i32, i64, u8, u32
from tirlite.ir.builder import Builder
from tirlite.target.processor import runs_here

n, m = tl.dims("n m")


@tl.kernel
def bits(x: tl.f32[n], y: tl.out[tl.u32[n]]):
    t = tl.alloc(tl.f32[n])
    words = tl.view(t, tl.u32[n])
    for i in range(n):
        t[i] = x[i]
    for i in range(n):
        y[i] = words[i]


def test_a_view_reads_the_same_bytes_as_another_type() -> None:
    x = np.array([1.5, -0.0, np.inf], np.float32)
    np.testing.assert_array_equal(bits(x), x.view(np.uint32))


@tl.kernel
def halves(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
    both = tl.alloc(tl.f32[2 * n * m])
    first = tl.view(both, tl.f32[n, m])
    second = tl.view(both, tl.f32[n, m], byte_offset=4 * n * m)
    for i in range(n):
        for j in range(m):
            first[i, j] = x[i, j]
            second[i, j] = -x[i, j]
    for i in range(n):
        for j in range(m):
            y[i, j] = first[i, j] - 2 * second[i, j]


def test_views_begin_at_their_byte_offsets() -> None:
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    np.testing.assert_array_equal(halves(x), 3 * x)


def test_a_view_promises_only_the_alignment_that_is_proved() -> None:
    b = Builder("unaligned")
    x, y = b.param("x", u8[64]), b.param("y", u32[3], out=True)
    shift = b.param("shift", tl.i64)
    for number, offset in enumerate((4, 2, shift * 8 + 1)):
        view = b.view(f"v{number}", x, u32[1], offset)
        b.store(y, number, view[0])
    kernel = tl.compile(b.build())
    assert kernel.llvm.count("load i32") == 3
    assert kernel.llvm.count("align 1\n") == 3  # the bytes of the caller are promised no more
    x = np.arange(64, dtype=np.uint8)
    expected = [x[at : at + 4].copy().view(np.uint32)[0] for at in (4, 2, 17)]
    assert kernel(x, 2).tolist() == expected


def test_vector_accesses_go_to_neighbours_strides_and_anywhere() -> None:
    b = Builder("vectors")
    x, places = b.param("x", i32[16]), b.param("places", i32[4])
    y = b.param("y", i32[4, 4], out=True)
    z = b.param("z", i32[16], out=True)
    four = Ramp(IntImm(i64, 0), IntImm(i64, 1), 4)
    b.store(y, (0, four), x[Ramp(IntImm(i64, 3), IntImm(i64, 1), 4)])
    b.store(y, (1, four), x[Ramp(IntImm(i64, 15), IntImm(i64, -5), 4)])
    b.store(y, (2, four), x[places[four]])
    b.store(y, (3, four), Broadcast(x[2], 4))
    with b.for_("i", 0, 16) as i:
        b.store(z, i, 0)
    b.store(z, Ramp(IntImm(i64, 1), IntImm(i64, 4), 4), x[four])
    x = np.arange(16, dtype=np.int32) * 10
    places = np.array([7, 0, 7, 2], np.int32)
    y, z = tl.compile(b.build())(x, places)
    assert y.tolist() == [[30, 40, 50, 60], [150, 100, 50, 0], [70, 0, 70, 20], [20] * 4]
    assert z.tolist() == [0, 0, 0, 0, 0, 10, 0, 0, 0, 20, 0, 0, 0, 30, 0, 0]


def test_vector_elements_are_one_more_axis_for_the_caller() -> None:
    b = Builder("triples")
    x, y = b.param("x", f32.with_lanes(3)[5]), b.param("y", f32.with_lanes(3)[5], out=True)
    with b.for_("i", 0, 5) as i:
        b.store(y, i, x[i] + x[i])
    x = np.arange(15, dtype=np.float32).reshape(5, 3)
    np.testing.assert_array_equal(tl.compile(b.build())(x), 2 * x)


def test_bools_of_a_vector_are_bytes() -> None:
    b = Builder("masks")
    x, y = b.param("x", i32[8]), b.param("y", bool_[8], out=True)
    eight = Ramp(IntImm(i64, 0), IntImm(i64, 1), 8)
    b.store(y, eight, Cast(bool_.with_lanes(8), x[eight]))
    assert tl.compile(b.build())(np.array([0, 1, 2, 0, -1, 0, 0, 5], np.int32)).tolist() == [0, 1, 1, 0, 1, 0, 0, 1]


def test_narrow_indices_are_extended_by_their_sign() -> None:
    b = Builder("gather")
    x, at, y = b.param("x", i32[256]), b.param("at", u8[3]), b.param("y", i32[3], out=True)
    with b.for_("i", 0, 3) as i:
        b.store(y, i, x[at[i]])
    x = np.arange(256, dtype=np.int32)
    assert tl.compile(b.build())(x, np.array([0, 127, 255], np.uint8)).tolist() == [0, 127, 255]


def test_a_vector_of_narrow_unsigned_indices_goes_on_at_zero() -> None:
    b = Builder("around")
    x, start, y = b.param("x", i32[300]), b.param("start", u8), b.param("y", i32[300])
    four = Ramp(start, IntImm(u8, 1), 4)
    b.store(y, four, x[four])
    for debug in (False, True):
        y = np.zeros(300, np.int32)
        tl.compile(b.build(), debug=debug)(np.arange(1, 301, dtype=np.int32), 254, y)
        assert np.flatnonzero(y).tolist() == [0, 1, 254, 255]
        assert y[[0, 1, 254, 255]].tolist() == [1, 2, 255, 256]


def test_volatile_accesses_are_kept() -> None:
    b = Builder("poll")
    y = b.param("y", i32[1], out=True)
    t = b.alloc("t", i32[1], volatile=True)
    b.store(t, 0, 1)
    b.store(t, 0, 2)
    b.store(y, 0, t[0] + t[0])
    kernel = tl.compile(b.build())
    assert kernel().tolist() == [4]
    assert kernel.optimised_llvm.count("store volatile i32") == 2
    assert kernel.optimised_llvm.count("load volatile i32") == 2


@pytest.mark.parametrize("loop", ["range", "tl.parallel", "tl.vectorized"])
def test_volatile_accesses_are_kept_in_loops_that_may_go_in_any_order(loop: str) -> None:
    kernel = tl.compile(tl.parse(POLLED.format(loop)))
    x = np.arange(40_000, dtype=np.int32)
    assert np.array_equal(kernel(x), x + x)
    assert kernel.optimised_llvm.count("load volatile i32") % 2 == 0
    assert "load volatile <" not in kernel.optimised_llvm
    if loop != "tl.parallel":
        assert "tl.parallel" not in str(kernel.lowered)


POLLED = """
n = tl.dim("n")

@tl.kernel
def polled(x: tl.buffer(tl.i32[n], volatile=True), y: tl.out[tl.i32[n]]):
    for i in {}(n):
        y[i] = x[i] + x[i]
"""

PAIRS = """
n, m = tl.dims("n m")

@tl.kernel
def pairs(x: tl.u8[n, 2 * m + 1], y: tl.{0}[n, m]):
    for i in range(n):
        for j in range(m):
            y[i, j] = {1}
"""


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("u8", "tl.u8((tl.u16(x[i, 2 * j]) + x[i, 2 * j + 1] + x[i, 2 * j + 2]) // 3)"),
        ("u8", "max(x[i, 2 * j], x[i, 2 * j + 1])"),
        ("i32", "tl.i32(x[i, 2 * j + 2]) - tl.i32(x[i, 2 * j]) * x[i, 2 * j + 1]"),
        ("f32", "tl.f32(x[i, 2 * j]) - tl.f32(x[i, 2 * j + 2])"),
    ],
)
def test_every_second_byte_is_half_of_a_word(dtype: str, value: str) -> None:
    func = tl.parse(PAIRS.format(dtype, value))
    pairs, plain = tl.compile(func), tl.compile(func, schedule=None)
    for n, m in ((1, 1), (3, 64), (5, 70), (2, 200), (4, 31)):
        x = np.random.default_rng(m).integers(0, 256, (n, 2 * m + 1)).astype(np.uint8)
        found, wanted = np.zeros((2, n, m), func.params[1].dtype.numpy)  # type: ignore[union-attr]
        pairs(x, found)
        plain(x, wanted)
        np.testing.assert_array_equal(found, wanted)


@tl.kernel(schedule=None)
def rows(x: tl.f32[8, 5, 64], at: tl.i64, y: tl.out[tl.f32[4, 64]]):
    flat = tl.view(x, tl.f32[20, 128])
    for i in range(4):
        y[i, tl.ramp(0, 1, 64)] = x[at + i, i, tl.ramp(0, 1, 64)] + x[at + i + 2, i + 1, tl.ramp(0, 1, 64)]
        y[i, tl.ramp(0, 1, 64)] = y[i, tl.ramp(0, 1, 64)] * x[at + (i - 1), i, tl.ramp(0, 1, 64)]
        if at + i > 2:
            y[i, tl.ramp(0, 1, 32)] = y[i, tl.ramp(32, 1, 32)] - flat[at + i + 7, tl.ramp(3, 1, 32)]
        else:
            y[i, tl.ramp(32, 1, 32)] = y[i, tl.ramp(0, 1, 32)] - flat[at + i + 6, tl.ramp(7, 1, 32)]
        y[i, tl.ramp(1, 1, 8)] = y[i, tl.ramp(0, 1, 8)] + flat[at + i + 5, tl.ramp(9, 1, 8)]
        y[i, tl.ramp(2, 1, 8)] = y[i, tl.ramp(0, 1, 8)] + x[7 - i, 2 - (i - i), tl.ramp(0, 1, 8)] * x[i, i, at + 1]


@pytest.mark.parametrize("at", [1, 2, 3])
def test_elements_beside_others_are_the_right_ones(at: int) -> None:
    """An address is told by its distance from one of the same row, of the same view, that came before for certain."""
    x = np.random.default_rng(at).standard_normal((8, 5, 64)).astype(np.float32)
    if at == 3:
        x = x[::-1].copy()
    wanted = rows.interpret(x, min(at, 2))
    np.testing.assert_array_equal(rows(x, min(at, 2)), wanted)


@tl.kernel(schedule=None)
def tile(x: tl.f32[8, 64], y: tl.out[tl.f32[64]], i: tl.i64):
    for j in range(0, 64, 16):
        y[tl.ramp(j, 1, 16)] = tl.broadcast(tl.f32(0), 16)
        y[tl.ramp(j, 1, 16)] += x[i, tl.ramp(j, 1, 16)] + x[i + 1, tl.ramp(j, 1, 16)] + x[i + 2, tl.ramp(j, 1, 16)]


def test_rows_of_a_tile_have_one_address_and_distances() -> None:
    lines = lower(tile.lowered).text.splitlines()
    products = [line for line in lines if "= mul nsw" in line and line.endswith(", 64")]
    assert len(products) == 1


@pytest.mark.skipif(not runs_here("x86-64-v3"), reason="code for another machine")
def test_a_choice_loads_the_bytes_of_one_float_also_with_no_effort() -> None:
    @tl.kernel(target=tl.Target("x86-64-v3"), schedule=None)
    def larger(x: tl.f32[n], y: tl.f32[n], z: tl.f32[n]):
        for i in range(n):
            z[i] = tl.select(x[i] < y[i], y[i], tl.f32(1))

    x, y, z = (guarded(np.array(each, np.float32), at_end=True) for each in ([1, 3], [2, 2], [0, 0]))
    with effort(Effort.NONE):
        larger(x, y, z)
    np.testing.assert_array_equal(z, np.array([2, 1], np.float32))
