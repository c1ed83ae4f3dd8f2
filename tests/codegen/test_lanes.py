"""`tl.interleave_low`, `tl.interleave_high`, `tl.dot` and `tl.any`: lanes of vectors, with the poison of each."""

import numpy as np
import pytest

import tirlite as tl
from tirlite.diag import KernelRunError


@tl.kernel
def interleaved(x: tl.f32[8], y: tl.f32[8]):
    t = tl.alloc(tl.f32[8])
    for i in range(6):
        t[i] = x[i]
    low = tl.interleave_low(x[tl.ramp(0, 1, 4)], t[tl.ramp(4, 1, 4)])
    high = tl.interleave_high(x[tl.ramp(0, 1, 4)], x[tl.ramp(4, 1, 4)])
    y[tl.ramp(0, 1, 4)] = low
    y[tl.ramp(4, 1, 4)] = high


@tl.kernel
def poisoned(x: tl.f32[8], y: tl.f32[8]):
    t = tl.alloc(tl.f32[8])
    for i in range(6):
        t[i] = x[i]
    y[tl.ramp(0, 1, 4)] = tl.interleave_high(x[tl.ramp(0, 1, 4)], t[tl.ramp(4, 1, 4)])


def test_lanes_come_in_turn() -> None:
    for run in (interleaved, interleaved.interpret, tl.compile(interleaved, debug=True)):
        y = np.zeros(8, np.float32)
        run(np.arange(8, dtype=np.float32), y)
        assert y.tolist() == [0, 4, 1, 5, 2, 6, 3, 7]


def test_poison_goes_along() -> None:
    messages = []
    for run in (poisoned.interpret, tl.compile(poisoned, debug=True)):
        with pytest.raises(KernelRunError) as raised:
            run(np.zeros(8, np.float32), np.zeros(8, np.float32))
        messages.append(str(raised.value))
    assert messages[0] == messages[1]
    assert "`t[4]`" in messages[0]


@tl.kernel
def counted(x: tl.i32[8], y: tl.i32[1]):
    t = tl.alloc(tl.i32[8])
    for i in range(7):
        t[i] = x[i]
    y[0] = tl.select(tl.any(x[tl.ramp(0, 1, 8)] > 5), 1, 0)
    if x[7] > 0:
        y[0] = tl.select(tl.any(t[tl.ramp(0, 1, 8)] > 5), 3, 2)


def test_any_lane_counts_and_any_poison() -> None:
    for run in (counted, counted.interpret, tl.compile(counted, debug=True)):
        for last, wanted in ((-1, 0), (-1, 1)):
            x, y = np.array([0, 1, 2, 3, 4, 5, 5 + wanted, last], np.int32), np.zeros(1, np.int32)
            run(x, y)
            assert y[0] == wanted
    messages = []
    for run in (counted.interpret, tl.compile(counted, debug=True)):
        with pytest.raises(KernelRunError) as raised:
            run(np.full(8, 1, np.int32), np.zeros(1, np.int32))
        messages.append(str(raised.value))
    assert messages[0] == messages[1]


def dots_of(one: tl.ir.DType, other: tl.ir.DType, lanes: int, shared: bool) -> tl.Kernel:
    """Dot products of groups of lanes, of which the first operand has one for all, or one for each."""
    group = 32 // one.bits
    first = group if shared else group * lanes

    @tl.kernel
    def dots(t: tl.i32[lanes], a: one[first], b: other[group * lanes], y: tl.out[tl.i32[lanes]]):
        y[tl.ramp(0, 1, lanes)] = tl.dot(
            t[tl.ramp(0, 1, lanes)], a[tl.ramp(0, 1, first)], b[tl.ramp(0, 1, group * lanes)]
        )

    return dots


@pytest.mark.parametrize("lanes", [4, 6, 64])
def test_dot_products_are_exact_at_the_ends_of_their_types(lanes: int) -> None:
    rng = np.random.default_rng(1)
    for one, other in ((tl.u8, tl.i8), (tl.i8, tl.u8), (tl.i8, tl.i8), (tl.i16, tl.i16), (tl.u16, tl.i16)):
        for shared in (True, False):
            kernel = dots_of(one, other, lanes, shared)
            t = np.full(lanes, np.iinfo(np.int32).max, np.int32)
            for pick in (lambda dtype: dtype.min, lambda dtype: dtype.max, None):
                a, b = (
                    np.full(shape, pick(dtype), dtype.numpy)
                    if pick
                    else rng.integers(dtype.min, dtype.max, shape, dtype.numpy, endpoint=True)
                    for dtype, shape in (
                        (one, 32 // one.bits * (1 if shared else lanes)),
                        (other, 32 // one.bits * lanes),
                    )
                )
                groups = np.broadcast_to(a.astype(np.int64).reshape(-1, 32 // one.bits), (lanes, 32 // one.bits))
                wanted = t + (groups * b.astype(np.int64).reshape(lanes, -1)).sum(axis=1)
                wanted = wanted.astype(np.int32)
                assert kernel(t, a, b).tolist() == wanted.tolist()
                assert kernel.interpret(t, a, b).tolist() == wanted.tolist()


@pytest.mark.parametrize("lanes", [16, 32, 128])
@pytest.mark.parametrize("dtype", [tl.i8, tl.u8])
def test_bytes_of_one_sign_are_summed_up_in_a_loop(dtype: tl.ir.DType, lanes: int) -> None:
    @tl.kernel(schedule=None)
    def sums(a: dtype[3, 36], b: dtype[9, 4 * lanes], y: tl.out[tl.i32[3, lanes]]):
        for i in range(3):
            y[i, tl.ramp(0, 1, lanes)] = tl.broadcast(tl.i32(0), lanes)
            for p in range(9):
                y[i, tl.ramp(0, 1, lanes)] = tl.dot(
                    y[i, tl.ramp(0, 1, lanes)], a[i, tl.ramp(4 * p, 1, 4)], b[p, tl.ramp(0, 1, 4 * lanes)]
                )

    rng = np.random.default_rng(4)
    a, b = (rng.integers(dtype.min, dtype.max, shape, dtype.numpy) for shape in ((3, 36), (9, 4 * lanes)))
    a[0], b[:, :8] = dtype.min, dtype.min
    columns = b.astype(np.int32).reshape(9, lanes, 4).transpose(0, 2, 1).reshape(36, lanes)
    np.testing.assert_array_equal(sums(a, b), a.astype(np.int32) @ columns)


@tl.kernel
def half_written(x: tl.i8[16], y: tl.i32[4]):
    t = tl.alloc(tl.i8[16])
    for i in range(15):
        t[i] = x[i]
    y[tl.ramp(0, 1, 4)] = tl.dot(y[tl.ramp(0, 1, 4)], t[tl.ramp(0, 1, 4)], x[tl.ramp(0, 1, 16)])
    y[tl.ramp(0, 1, 2)] = tl.dot(y[tl.ramp(0, 1, 2)], x[tl.ramp(0, 1, 8)], t[tl.ramp(8, 1, 8)])


def test_a_dot_product_of_poison_is_poison() -> None:
    messages = []
    for run in (half_written.interpret, tl.compile(half_written, debug=True)):
        with pytest.raises(KernelRunError) as raised:
            run(np.zeros(16, np.int8), np.zeros(4, np.int32))
        messages.append(str(raised.value))
    assert messages[0] == messages[1]
    assert "`t[8]`" in messages[0]
