"""`tl.interleave_low`, `tl.interleave_high` and `tl.any`: lanes of vectors, with the poison of each."""

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
