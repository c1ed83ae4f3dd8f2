"""`kernel.profile`: the loops of the author with their lines and bytes, beside what the machine can do."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import tirlite as tl
from tirlite.analysis.loops.loop_costs import Costs, costs_of
from tirlite.ir import For, KernelCall

n, m = tl.dims("n m")


@tl.kernel
def softened(x: tl.f32[n, m], y: tl.f32[n, m], sums: tl.out[tl.f32[n]]):
    t = tl.alloc(tl.f32[n, m])
    for i in range(n):
        for j in range(m):
            t[i, j] = tl.exp(x[i, j]) * 2
    for i in range(n):
        sums[i] = 0
        for j in tl.reduce(m):
            sums[i] += t[i, j]
    for i in range(n):
        for j in range(m):
            y[i, j] += t[i, j] / sums[i]


def test_each_loop_is_timed_at_the_line_where_it_was_written() -> None:
    x, y = np.ones((300, 400), np.float32), np.full((300, 400), 5, np.float32)
    profile = softened.profile(x, y)
    lines = Path(__file__).read_text("utf-8").splitlines()
    first = lines.index("    t = tl.alloc(tl.f32[n, m])") + 2
    assert [each.line for each in profile] == [first, first + 3, first + 7]
    assert [each.stores for each in profile] == [("t",), ("sums",), ("y",)]
    size, rows = 4 * 300 * 400, 4 * 300
    assert [each.bytes for each in profile] == [2 * size, size + 2 * rows, 3 * size + rows]
    assert all(each.runs == 1 and each.seconds > 0 and each.limit > 0 for each in profile)
    assert all(each.limited_by in ("bytes", "multiply-adds", "functions") for each in profile)
    assert sum(each.seconds for each in profile) + profile.outside == pytest.approx(profile.seconds)
    text = str(profile)
    assert "share of limit" in text
    assert "for i in range(n):" in text
    told = json.loads(profile.to_json())
    assert [each["bytes"] for each in told["loops"]] == [each.bytes for each in profile]
    assert told["plain_seconds"] == profile.plain_seconds
    # What the kernel updates is as after one call.
    assert np.allclose(y, 5 + 1 / 400)


def test_it_tells_how_many_threads_may_run_loops_now() -> None:
    @tl.kernel(target=tl.Target.host(workers=2))
    def twice(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        for i in tl.parallel(n):
            y[i] = 2 * x[i]

    x = np.ones(8, np.float32)
    try:
        tl.set_num_threads(1)
        assert "with 1 worker\n" in str(twice.profile(x, np.empty_like(x)))
    finally:
        tl.set_num_threads(os.cpu_count() or 1)


def test_loops_that_passes_make_of_one_are_the_row_of_its_author() -> None:
    @tl.kernel
    def exponentials(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        for i in range(n):
            y[i] = tl.exp(x[i])

    assert str(exponentials.lowered).count("for i in") > 1
    (row,) = exponentials.profile(np.ones(1003, np.float32))
    assert (row.loop, row.stores, row.bytes) == ("for i in range(n):", ("y",), 2 * 4 * 1003)
    assert row.line == exponentials.ir.body.stmts[0].span.line


def test_calls_of_every_kind_are_profiled() -> None:
    @tl.kernel
    def gather(x: tl.f32[n], at: tl.i64[m], y: tl.f32[m]):
        for i in range(m):
            y[i] += x[at[i]]

    @tl.kernel
    def shifted(x: tl.f32[n], k: tl.i64, y: tl.out[tl.f32[n]]):
        for i in range(n):
            y[i] = x[i + k]

    @tl.kernel
    def searched(x: tl.f32[n], y: tl.out[tl.i64[1]]):
        k = 0
        while k < n and x[k] < 5:
            k += 1
        y[0] = k

    x = np.arange(64, dtype=np.float32)
    at, y = np.array([3, 1, 2]), np.zeros(3, np.float32)
    rows = gather.profile(x[::2], at, y)
    assert "y" in rows[-1].stores
    assert y.tolist() == [6, 2, 4]
    assert searched.profile(x)[0].limited_by == "bytes, at least"
    assert len(softened.profile(np.ones((0, 3), np.float32), np.ones((0, 3), np.float32))) == 3
    # A call that is left to the version in order.
    assert len(shifted.profile(x, 0)) == 1
    with pytest.raises(tl.KernelRunError, match="index 64 is out of bounds"):
        shifted.profile(x, 1)
    with pytest.raises(tl.CallTypeError):
        searched.profile(x, x, x)


def test_costs_are_those_of_the_elements_that_a_loop_touches() -> None:
    func = tl.parse(
        """
        n = tl.dim("n")
        @tl.kernel
        def triangle(x: tl.f64[n, n], y: tl.f64[n]):
            for i in range(n):
                for j in range(i, n):
                    y[i] = y[i] + tl.sqrt(x[i, j // 2]) / 3
        """
    )
    loop = func.body.stmts[0]
    assert isinstance(loop, For)
    size = 100
    costs = costs_of([loop], {func.dims[0]: size})
    runs = size * (size + 1) // 2
    assert (costs.read, costs.written) == (8 * (size * size // 2 + size), 8 * size)
    assert costs.operations is not None
    assert costs.functions is not None
    assert costs.operations["f64"] == pytest.approx(runs, rel=0.02)
    assert costs.functions["sqrt", "f64"] == costs.functions["/", "f64"] == pytest.approx(runs, rel=0.02)
    unknown = tl.parse(
        """
        n = tl.dim("n")
        @tl.kernel
        def counted(x: tl.i64[n]):
            for i in range(x[0]):
                x[i] = 1
        """
    )
    assert costs_of(unknown.body.stmts, {unknown.dims[0]: 8}) == Costs(8, 8 * 8)


def test_what_a_called_function_computes_is_counted_at_the_sizes_of_the_call() -> None:
    @tl.kernel
    def product(a: tl.f32[n], b: tl.f32[n, m], y: tl.out[tl.f32[m]]):
        for j in range(m):
            y[j] = 0
        for i in range(n):
            for j in range(m):
                y[j] = tl.fma(a[i], b[i, j], y[j])

    @tl.kernel
    def twice(a: tl.f32[n], b: tl.f32[n, m], c: tl.f32[n, 7], y: tl.out[tl.f32[m]], z: tl.out[tl.f32[7]]):
        tl.call(product, a, b, y)
        tl.call(product, a, c, z)

    calls = [stmt for stmt in twice.ir.body.stmts if isinstance(stmt, KernelCall)]
    counted = [costs_of([call], dict(zip(twice.ir.dims, (3, 5), strict=True))) for call in calls]
    assert [each.operations for each in counted] == [{"f32": 3 * 5}, {"f32": 3 * 7}]
    assert [each.written for each in counted] == [4 * 5, 4 * 7]


@tl.kernel
def chosen(a: tl.f32[8, 5], b: tl.f32[8, 5], which: tl.i64, y: tl.out[tl.f32[8]]):
    for i in range(8):
        if which > 0:
            for p in range(5):
                y[i] += a[i, p] * b[i, p]
        else:
            y[i] = a[i, 0] + b[i, 0] + 1


def test_a_multiply_add_counts_once_and_of_two_branches_the_one_with_more() -> None:
    (loop,) = chosen.ir.body.stmts
    assert costs_of([loop], {}).operations == {"f32": 8 * 5}
