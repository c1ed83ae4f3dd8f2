"""Rfactor and scan: reductions and running sums by partial results."""

from __future__ import annotations

import numpy as np
import pytest
from schedules.test_steps import body_of, product

import tirlite as tl

n, m = tl.dims("n m")


@tl.kernel
def total(x: tl.f32[n], y: tl.f32[1]):
    for i in tl.reduce(n):
        y[0] += x[i]


@tl.kernel(allow="reassociate")
def running(x: tl.f32[n], y: tl.f32[n]):
    for i in range(1, n):
        y[i] = y[i - 1] + x[i]


def by_lanes(s: tl.Schedule) -> None:
    s.split("i", 8)
    s.rfactor("i.inner", at="i.outer")


def test_partial_results_are_an_allocation_begun_before_and_combined_behind() -> None:
    s = tl.schedule(total)
    by_lanes(s)
    assert body_of(s) == (
        "y_partial = tl.alloc(tl.f32[8])\n"
        "for i_inner_begun in range(8):\n"
        "    y_partial[i_inner_begun] = tl.f32(-0.0)\n"
        "for i_outer in tl.reduce(0, n, 8):\n"
        "    for i_inner in range(i_outer, min(i_outer + 8, n)):\n"
        "        y_partial[i_inner - i_outer] = y_partial[i_inner - i_outer] + x[i_inner]\n"
        "for i_inner_combined in tl.reduce(8):\n"
        "    y[0] = y[0] + y_partial[i_inner_combined]"
    )
    assert str(s).endswith("s.rfactor('i.inner', at='i.outer')")


def test_the_grouping_stands_in_the_lowered_function() -> None:
    kernel = tl.compile(total, schedule=by_lanes)
    lowered = tl.compile(kernel.lowered, schedule=None)
    for size in (0, 1, 7, 8, 100):
        x = np.random.default_rng(0).normal(size=size).astype("f")
        found, again, y = (np.full(1, -0.0, "f") for _ in range(3))
        kernel(x, found)
        total.interpret(x, y)
        np.testing.assert_allclose(found, y, rtol=1e-5)
        if size:
            lowered.interpret(x, again)
            assert found.tobytes() == again.tobytes()


def test_iterations_of_one_loop_get_a_partial_result_each() -> None:
    s = tl.schedule(product)
    s.rfactor("p")
    assert "            y_partial = tl.alloc(tl.f32[k])\n" not in body_of(s)
    assert "for p in range(k):\n            y_partial[p] = y_partial[p] + a[i, p] * b[p, j]" in body_of(s)


def test_pairs_have_partial_results_of_both() -> None:
    @tl.kernel
    def highest(x: tl.f32[n], best: tl.f32[1], place: tl.i64[1]):
        top, at = tl.f32(float("-inf")), tl.i64(0)
        for i in tl.reduce(n):
            top, at = tl.argmax((top, at), (x[i], i))
        best[0], place[0] = top, at

    kernel = tl.compile(highest, schedule=by_lanes)
    assert "top_partial[i_inner_begun] = tl.f32(-inf)" in str(kernel.schedule.func).replace('"', "")
    assert "at_partial = tl.alloc(tl.i64[8])" in str(kernel.schedule.func)
    for values in ([], [2], [1, 3] * 9, [4, np.nan, 7, np.nan], [-np.inf] * 11):
        best, place = np.zeros(1, "f"), np.zeros(1, np.int64)
        x = np.array(values, "f")
        kernel(x, best, place)
        wanted = (x[x.argmax()], x.argmax()) if len(x) else (-np.inf, 0)
        np.testing.assert_array_equal((best[0], place[0]), wanted)


def test_what_is_no_reduction_is_refused_with_its_accesses() -> None:
    @tl.kernel
    def in_order(x: tl.f32[n], y: tl.f32[1]):
        for i in range(n):
            y[0] += x[i]

    with pytest.raises(tl.KernelError, match=r"the loop over `i` is no `tl.reduce`"):
        tl.schedule(in_order).rfactor("i")

    @tl.kernel
    def read(x: tl.f32[n], y: tl.f32[n]):
        total = tl.f32(0)
        for i in tl.reduce(n):
            total += x[i]
            y[i] = total

    with pytest.raises(tl.KernelError, match="`total` is combined over `i`, and read by its iterations"):
        tl.schedule(read).rfactor("i")


def test_no_element_is_combined_into_that_may_not_be_there() -> None:
    @tl.kernel
    def last(x: tl.f32[n], y: tl.f32[m], at: tl.i64):
        for i in tl.reduce(n):
            y[at] += x[i]

    with pytest.raises(tl.KernelError, match="the element of `y` is not proved to be in bounds"):
        tl.schedule(last).rfactor("i")


def test_a_running_sum_goes_by_blocks_that_are_independent() -> None:
    s = tl.schedule(running)
    s.scan("i", 8)
    assert body_of(s).startswith('with tl.allow("reassociate"):\n    y_1 = tl.alloc(tl.f32[()], scope="local")\n')
    assert (
        "    for i_carry in range(1, n, 8):\n"
        "        block = y_blocks[(i_carry - 1) // 8]\n"
        "        y_blocks[(i_carry - 1) // 8] = y_1[()]\n"
        "        y_1[()] = y_1[()] + block\n"
    ) in body_of(s)
    s.parallel("i.blocks")
    s.parallel("i.block")
    kernel = tl.compile(running, schedule=s)
    for size in (1, 2, 8, 9, 50):
        x = np.random.default_rng(0).integers(-9, 9, size=size).astype("f")
        found, wanted = np.ones(size, "f"), np.ones(size, "f")
        kernel(x, found)
        running.interpret(x, wanted)
        np.testing.assert_array_equal(found, wanted)


@tl.kernel
def counted(x: tl.i32[n], y: tl.i32[n], e: tl.i32[1]):
    total = tl.i32(0)
    for i in range(n):
        twice = x[i] * 2
        y[i] = total
        total += twice
    e[0] = total


def test_sums_that_are_read_before_they_go_on() -> None:
    kernel = tl.compile(counted, schedule=lambda s: s.scan("i", 4))
    for size in (1, 4, 5, 30):
        x = np.arange(size, dtype=np.int32)
        y, e = np.zeros(size, np.int32), np.zeros(1, np.int32)
        kernel(x, y, e)
        np.testing.assert_array_equal(y, np.cumsum(2 * x) - 2 * x)
        assert e[0] == 2 * x.sum()


def test_sums_of_floats_are_regrouped_where_that_is_granted_alone() -> None:
    @tl.kernel
    def strict(x: tl.f32[n], y: tl.f32[n]):
        for i in range(1, n):
            y[i] = y[i - 1] + x[i]

    with pytest.raises(tl.KernelError, match=r'rounds differently; grant tl.allow\("reassociate"\)'):
        tl.schedule(strict).scan("i", 8)


def test_what_is_combined_is_not_of_what_the_loop_writes() -> None:
    @tl.kernel
    def fed(y: tl.i32[n]):
        total = tl.i32(0)
        for i in range(1, n):
            total += y[i - 1]
            y[i] = total

    with pytest.raises(tl.KernelError, match="what is combined is of `y`, which the loop writes"):
        tl.schedule(fed).scan("i", 8)

    @tl.kernel
    def squared(y: tl.f32[n]):
        for i in range(1, n):
            y[i] = y[i - 1] * y[i - 1]

    with pytest.raises(tl.KernelError, match="what is combined is of `y`, which the loop writes"):
        tl.schedule(squared).scan("i", 8)


def test_what_is_stored_twice_is_no_running_sum() -> None:
    @tl.kernel(allow="reassociate")
    def halved(x: tl.f32[n], y: tl.f32[n]):
        for i in range(1, n):
            y[i] = y[i - 1] + x[i]
            y[i] = y[i] / 2

    with pytest.raises(tl.KernelError, match=r"y\[i - 1\] \(line \d+\) must come after y\[i\]"):
        tl.schedule(halved).scan("i", 8)


@pytest.mark.parametrize("more", ["total += 1", "if x[i] < 0:\n            total = tl.i32(0)"])
def test_what_is_combined_twice_or_begun_anew_is_no_running_sum(more: str) -> None:
    func = tl.parse(
        f"""
n = tl.dim("n")

@tl.kernel
def summed(x: tl.i32[n], y: tl.i32[n]):
    total = tl.alloc(tl.i32[1])
    total[0] = 0
    for i in range(n):
        total[0] += x[i]
        {more.replace("total", "total[0]")}
        y[i] = total[0]
"""
    )
    with pytest.raises(tl.KernelError, match="`total` is written by several statements"):
        tl.schedule(func).scan("i", 4)


def test_what_each_iteration_allocates_for_itself_is_passed_on_by_none() -> None:
    @tl.kernel
    def copied(x: tl.i32[n], y: tl.i32[n]):
        for i in range(1, n):
            own = tl.alloc(tl.i32[n])
            for j in range(n):
                own[j] = x[j]
            own[i] = own[i - 1] + 1
            y[i] = own[i]

    with pytest.raises(tl.KernelError, match="passes nothing on"):
        tl.schedule(copied).scan("i", 8)


def test_sums_of_vectors_are_not_scanned() -> None:
    @tl.kernel
    def columns(x: tl.i32[n, 8], y: tl.i32[8], z: tl.i32[n, 8]):
        for i in range(n):
            y[tl.ramp(0, 1, 8)] = y[tl.ramp(0, 1, 8)] + x[i, tl.ramp(0, 1, 8)]
            z[i, tl.ramp(0, 1, 8)] = y[tl.ramp(0, 1, 8)]

    with pytest.raises(tl.KernelError, match="`y` is combined by vectors"):
        tl.schedule(columns).scan("i", 8)
