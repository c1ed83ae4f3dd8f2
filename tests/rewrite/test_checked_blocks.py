"""Loops that load at checked places go by blocks, whose places are looked at first: by vectors, or with the fault."""

from __future__ import annotations

import numpy as np
import pytest
from told import told_by

import tirlite as tl

n, m, h, w = tl.dims("n m h w")


@tl.kernel
def between(x: tl.f32[h, w], at: tl.f32[n, m], to: tl.i32[n, m], y: tl.f32[n, m]):
    for i in range(n):
        for q in range(m):
            p = at[i, q]
            j = tl.i64(p)
            f = p - tl.f32(j)
            y[i, q] = x[0, j] * (1 - f) + x[0, j + 1] * f


@tl.kernel
def elsewhere(x: tl.f32[h, w], at: tl.f32[n, m], to: tl.i32[n, m], y: tl.f32[n, m]):
    for i in range(n):
        for q in range(m):
            y[i, q] = x[tl.i64(at[i, q]) // 2 - 1, to[i, q] * 2]


@tl.kernel
def far(x: tl.f32[h, w], at: tl.f32[n, m], to: tl.i32[n, m], y: tl.f32[n, m]):
    for i in range(n):
        for q in range(m):
            y[i, q] = x[0, tl.i64(max(at[i, q] * 0.5, 0.0))]
            y[i, q] = at[i, q]


@tl.kernel
def rounded(x: tl.f32[h, w], at: tl.f32[n, m], to: tl.i32[n, m], y: tl.f32[n, m]):
    for i in range(n):
        for q in range(m):
            down = tl.floor(at[i, q])
            j = tl.i32(down)
            y[i, q] = (down - at[i, q]) * (x[to[i, q] // 8, j] + x[to[i, q] // 8 + 1, j + 1])


@tl.kernel
def resized(x: tl.f32[h, w], at: tl.f32[n, m], to: tl.i32[n, m], y: tl.f32[n, m]):
    for i in range(n):
        p = tl.i32(at[i, 0])
        for q in range(m):
            j = to[0, q] * 2
            y[i, q] = x[p // 2, j] * at[i, q] + x[0, j + 1]


KERNELS = [between, elsewhere, far, rounded, resized]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("target", ["host", "x86-64-v3"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda each: each.ir.name)
def test_faults_and_the_stores_before_are_those_of_iterations_in_order(
    kernel: tl.Kernel, target: str, workers: int
) -> None:
    made = tl.compile(kernel, target=tl.Target(target, workers=workers))
    rng = np.random.default_rng(5)
    wrong = (np.nan, np.inf, -1.5, -0.5, 8.0, 37.5, 38.0, 39.0, 40.5, 1e30, -1e30)
    for trial in range(24):
        rows, columns = rng.choice([1, 3]), rng.choice([1, 31, 32, 50, 1024, 1100])
        x = rng.standard_normal((4, 39)).astype(np.float32)
        at = rng.uniform(2, 7, (rows, columns)).astype(np.float32)
        to = rng.integers(0, 19, (rows, columns)).astype(np.int32)
        y = rng.standard_normal((rows, columns)).astype(np.float32)
        for _ in range(trial % 3):
            at[rng.integers(rows), rng.integers(columns) * (trial % 2)] = rng.choice(wrong)
            if trial % 4 == 3:
                to[rng.integers(rows) * (trial % 8 == 3), rng.integers(columns)] = rng.choice([-1, 20, 2**30, -(2**31)])
        args, same = [x, at, to, y], [x, at, to, y.copy()]
        told, wanted = told_by(made, args), told_by(made.interpret, same)
        assert told == wanted
        np.testing.assert_array_equal(args[-1], same[-1], err_msg=wanted)


@pytest.mark.parametrize(
    "body",
    [
        "x[0, tl.i64(y[q])]",
        "x[0, tl.i64(at[q])] + y[q]",
        "x[0, tl.i64(tl.exp(at[q]))]",
        "x[0, tl.i64(at[q] / x[0, q])]",
    ],
)
def test_places_that_iterations_decide_and_rows_that_are_loaded_again_are_checked_where_they_stand(body: str) -> None:
    source = f"""
        n, w = tl.dims("n w")

        @tl.kernel
        def kernel(x: tl.f32[3, w], at: tl.f32[n], y: tl.f32[n]):
            for q in range(n):
                y[q] = {body}
        """
    text = str(tl.compile(tl.parse(source), target=tl.Target("x86-64-v4")).lowered)
    assert "tl.checked" in text
    assert ("most" in text) is ("at[q] / x" in body)


@pytest.mark.parametrize("target", ["x86-64-v4", "x86-64-v3"])
def test_places_that_depend_on_one_loop_each_are_checked_before_all_of_them(target: str) -> None:
    func = tl.compile(resized, target=tl.Target(target, workers=2)).lowered
    *_, choice = func.body.stmts
    assert isinstance(choice, tl.ir.IfThenElse)
    (rows,) = choice.then_body.stmts
    assert isinstance(rows, tl.ir.For)
    assert rows.kind is tl.ir.ForKind.PARALLEL
    assert "tl.checked" not in str(rows)


def test_places_of_a_nest_without_rows_are_not_looked_at() -> None:
    @tl.kernel
    def columns(x: tl.f32[n, w], at: tl.f32[m], first: tl.i64, begin: tl.i64, y: tl.f32[n, m]):
        for i in range(begin, n):
            for q in range(m):
                y[i, q] = x[i, tl.i32(at[q + first])]

    assert "most" in str(columns.lowered)
    x, at, y = np.ones((2, 5), np.float32), np.zeros(3, np.float32), np.ones((2, 3), np.float32)
    columns(x, at, 1 << 40, 2, y)
    np.testing.assert_array_equal(y, np.ones((2, 3), np.float32))


def test_places_that_depend_on_two_loops_are_checked_row_by_row() -> None:
    func = tl.compile(elsewhere, target=tl.Target("x86-64-v4", workers=2)).lowered
    assert not any(loop.kind is tl.ir.ForKind.PARALLEL for loop in tl.ir.statements_of(func.body, tl.ir.For))
