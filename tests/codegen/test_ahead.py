"""Rows of weights that a tile of sums goes through are asked for ahead of it."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite.target.processor import runs_here

TARGET = tl.Target("x86-64-v4")


@tl.inline
def add_up(w, x, y):
    with tl.allow("contract"):
        for k in range(w.shape[1]):
            for j in range(x.shape[1]):
                total = tl.f32(0)
                for c in range(w.shape[0]):
                    total += w[c, k] * x[c, j]
                y[k, j] = total


@tl.kernel
def by_rows(w: tl.f32[1024, 12], x: tl.f32[1024, 32], y: tl.out[tl.f32[12, 32]]):
    add_up(w, x, y)


@tl.kernel
def through_a_view(w: tl.f32[1024 * 12], x: tl.f32[1024, 32], y: tl.out[tl.f32[12, 32]]):
    rows = tl.view(w, tl.f32[1024, 12])
    add_up(rows, x, y)


@tl.kernel
def of_small_arrays(w: tl.f32[64, 12], x: tl.f32[64, 32], y: tl.out[tl.f32[12, 32]]):
    add_up(w, x, y)


@tl.kernel
def of_parts_of_rows(w: tl.f32[1024, 36], x: tl.f32[1024, 32], y: tl.out[tl.f32[36, 32]]):
    add_up(w, x, y)


@tl.kernel
def by_tiles(w: tl.f32[64, 32, 64], x: tl.f32[32, 46], y: tl.out[tl.f32[64, 46, 64]]):
    with tl.allow("contract"):
        for panel in range(64):
            for i in range(46):
                for j in range(64):
                    total = tl.f32(0)
                    for c in range(32):
                        total += x[c, i] * w[panel, c, j]
                    y[panel, i, j] = total


@tl.kernel
def along_rows(w: tl.f32[96, 1024], x: tl.f32[1024, 64], y: tl.out[tl.f32[96, 64]]):
    with tl.allow("contract"):
        for k in range(96):
            for j in range(64):
                total = tl.f32(0)
                for c in range(1024):
                    total += w[k, c] * x[c, j]
                y[k, j] = total


def lines_asked_for(kernel: tl.Kernel) -> int:
    return tl.compile(kernel, target=TARGET).llvm.count("call void @llvm.prefetch")


def test_whole_rows_of_what_no_first_cache_holds_are_asked_for() -> None:
    # A row of w is less than a line, one of x two; of a row of 36 each tile reads a third.
    kernels = (by_rows, through_a_view, of_parts_of_rows, of_small_arrays)
    assert [*map(lines_asked_for, kernels)] == [3, 3, 2, 0]


def test_tiles_ask_for_shares_of_the_next_panel_and_the_next_rows() -> None:
    # Seven tiles go through a panel, so each asks for an eighth of a row, and what is left for none. A tile that goes
    # along six rows asks for a part of a line of the next six, and for a row of x, of four lines.
    assert [*map(lines_asked_for, (by_tiles, along_rows))] == [1, 5]


@pytest.mark.skipif(not runs_here(TARGET.name), reason="code for another machine")
def test_nothing_but_time_changes() -> None:
    rng = np.random.default_rng(0)
    w, x = rng.random((1024, 12), np.float32), rng.random((1024, 32), np.float32)
    made = tl.compile(by_rows, target=TARGET)
    np.testing.assert_allclose(made(w, x), w.T @ x, rtol=1e-5)
    panels, columns = rng.random((64, 32, 64), np.float32), rng.random((32, 46), np.float32)
    made = tl.compile(by_tiles, target=TARGET)
    np.testing.assert_allclose(made(panels, columns), np.einsum("ci,pcj->pij", columns, panels), rtol=1e-5)


def test_rows_of_results_are_left_to_vectors_that_ask_for_nothing() -> None:
    n, m = tl.dims("n m")

    @tl.kernel(allow="contract", target=TARGET)
    def row_by_row(a: tl.f32[n, m], b: tl.f32[m, n], y: tl.out[tl.f32[n, n]]):
        for i in range(n):
            for j in range(n):
                y[i, j] = 0
            for p in range(m):
                for j in range(n):
                    y[i, j] += a[i, p] * b[p, j]

    a, b, y = np.ones((9, 40), np.float32), np.ones((40, 9), np.float32), np.zeros((9, 9), np.float32)
    assert "p_else in range(0, " in str(row_by_row.lowered)
    assert lines_asked_for(row_by_row) == 1  # by the tiles of large ones
    if runs_here(TARGET.name):
        row_by_row(a, b, y)
        np.testing.assert_array_equal(y, a @ b)
