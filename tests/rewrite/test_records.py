"""Loops that keep a record ask whole vectors whether they break it, and do what is written."""

from __future__ import annotations

import numpy as np
import pytest
from every import every
from rewrite.before_after import BeforeAfter

import tirlite as tl
from tirlite.rewrite import VectorizeLoops

n, m = tl.dims("n m")


@tl.kernel
def places(x: tl.f32[n], y: tl.out[tl.f32[4]], at: tl.out[tl.i64[2]]):
    least = 0
    for i in range(1, n):
        if x[i] < x[least]:
            least = i
    low, high = x[0], x[0]
    for i in range(n):
        v = x[i]
        if v <= low:
            low = v
        if high < v:
            high = v
    paid, best = x[0], tl.f32(0)
    last = 0
    for i in range(n):
        if x[i] < paid:
            paid = x[i]
        if x[i] - paid > best:
            best = x[i] - paid
            last = i
    at[0] = least
    at[1] = last
    y[0], y[1], y[2], y[3] = low, high, paid, best


AS_WRITTEN = tl.compile(places, schedule=None)


@tl.kernel
def chosen(cost: tl.i16[n], taken: tl.bool_[n], order: tl.out[tl.i32[n]]):
    done = tl.alloc(tl.bool_[n])
    for i in range(n):
        done[i] = taken[i]
        order[i] = -1
    for r in range(n):
        at = -1
        best = tl.i16(32767)
        for i in range(n):
            if not done[i] and cost[i] < best:
                best = cost[i]
                at = i
        if at < 0:
            break
        done[at] = True
        order[r] = tl.i32(at)


@tl.kernel
def sorted_in_place(x: tl.f64[n]):
    for i in range(n - 1):
        at = i
        for j in range(i + 1, n):
            if x[j] < x[at]:
                at = j
        x[i], x[at] = x[at], x[i]


def values(length: int, seed: int) -> np.ndarray:
    """Rising, falling or neither, with equal ones, and some that are no numbers."""
    random = np.random.default_rng(seed)
    x = random.integers(-9, 9, length).astype(np.float32) / 2
    if seed % 4 < 2:
        x = np.sort(x + random.standard_normal(length).astype(np.float32))[:: 1 - 2 * (seed % 2)].copy()
    x[random.random(length) < (0, 0.3)[seed % 3 == 0]] = np.nan
    x[random.random(length) < 0.2] *= -0.0
    return x


@every("length", [1, 2, 31, 32, 33, 65, 100, 1100])
def test_records_are_those_that_are_written(length: int) -> None:
    assert str(places.lowered).count("tl.any(") == 3
    for seed in range(12):
        x = values(length, seed)
        wanted = [result.tobytes() for result in places.interpret(x)]
        for run in (places, AS_WRITTEN, tl.compile(places.lowered).interpret):
            assert [result.tobytes() for result in run(x)] == wanted


@every("length", [1, 2, 33, 70, 130])
def test_records_in_a_loop_that_changes_what_is_compared(length: int) -> None:
    assert "tl.any(" in str(chosen.lowered)
    assert "tl.any(" in str(sorted_in_place.lowered)
    random = np.random.default_rng(length)
    cost, taken = random.integers(-50, 50, length).astype(np.int16), random.random(length) < 0.2
    np.testing.assert_array_equal(chosen(cost, taken), chosen.interpret(cost, taken))
    x = values(length, length).astype(np.float64)
    wanted, lowered, found = x.copy(), x.copy(), x.copy()
    sorted_in_place.interpret(wanted)
    tl.compile(sorted_in_place.lowered).interpret(lowered)
    sorted_in_place(found)
    assert found.tobytes() == lowered.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("if x[i, 0] > top: top = x[i, 0]", id="what lies apart"),
        pytest.param("if x[0, i] > top: top = x[1, i]", id="another value"),
        pytest.param("if x[0, i] > top: top = top + 1", id="a count"),
        pytest.param("if x[0, i] > 0: top = x[0, i]", id="what does not change"),
    ],
)
def test_other_loops_are_not_asked(body: str) -> None:
    test, store = body.split(": ")
    BeforeAfter((VectorizeLoops(),)).expect_unchanged(
        f"""
        top = tl.f32(0)
        for i in range(min(n, m)):
            {test}:
                {store}
        y[0, 0] = top
        """
    )
