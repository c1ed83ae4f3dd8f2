"""Lanes that lie few elements apart are loaded by whole vectors that stay between the first and the last one."""

from __future__ import annotations

import numpy as np
import pytest
from fuzz.guard import guarded

import tirlite as tl
from tirlite.codegen.gathers import phases_of
from tirlite.ir import For, statements_of
from tirlite.target.processor import runs_here

n, k = tl.dims("n k")
NAMES = {"u8": "u1", "i16": "i2", "f32": "f4", "f64": "f8"}


@pytest.mark.parametrize("dtype", NAMES)
def test_lanes_apart(dtype: str) -> None:
    stores = "\n".join(
        f"    y[{row}, tl.ramp(0, 1, {lanes})] = x[tl.ramp({300 - stride * (lanes - 1) - 1}, {stride}, {lanes})]"
        for row, (stride, lanes) in enumerate((stride, lanes) for stride in (2, 3, 4) for lanes in (2, 4, 8, 16, 64))
    )
    kernel = tl.compile(
        tl.parse(f"@tl.kernel\ndef f(x: tl.{dtype}[300], y: tl.{dtype}[15, 64]):\n{stores}\n"), schedule=None
    )
    x = (
        np.random.default_rng(0)
        .integers(0, 100, 300)
        .astype({"u8": "u1", "i16": "i2", "f32": "f4", "f64": "f8"}[dtype])
    )
    found, wanted = np.zeros((2, 15, 64), x.dtype)
    kernel(x, found)
    kernel.interpret(x, wanted)
    np.testing.assert_array_equal(found, wanted)


@tl.kernel
def pooled(x: tl.u8[2 * n + 1, 3 * n], y: tl.out[tl.u8[n, n]]):
    for i in range(n):
        for j in range(n):
            top = tl.u8(0)
            for u in tl.reduce(3):
                for v in tl.reduce(3):
                    top = max(top, x[2 * i + u, 3 * j + v])
            y[i, j] = top


def test_windows_that_step() -> None:
    assert "tl.ramp(3 * first" in str(pooled.lowered)
    for size in (1, 3, 16, 31, 70):
        x = np.random.default_rng(size).integers(0, 256, (2 * size + 1, 3 * size), dtype=np.uint8)
        taps = [x[u : u + 2 * size : 2, v : v + 3 * size : 3] for u in range(3) for v in range(3)]
        np.testing.assert_array_equal(pooled(x), np.max(taps, axis=0))


@tl.kernel
def pairs(x: tl.f32[n, 2 * n], y: tl.out[tl.f32[n, n]]):
    for i in range(n):
        for j in range(n):
            top = x[i, 2 * j]
            for v in tl.reduce(2):
                top = max(top, x[i, 2 * j + v])
            y[i, j] = top


@tl.kernel(allow="contract")
def every_third(x: tl.f64[3 * n + k - 3], weights: tl.f64[k], y: tl.out[tl.f64[n]]):
    for i in range(n):
        total = 0.0
        for p in tl.reduce(k):
            total += x[3 * i + p] * weights[p]
        y[i] = total


def test_lanes_that_fill_the_gaps_of_others_come_out_of_the_same_vectors() -> None:
    for size in (1, 15, 16, 64, 70):
        x = guarded(np.random.default_rng(size).standard_normal((size, 2 * size)).astype("f4"), at_end=True)
        np.testing.assert_array_equal(pairs(x), np.maximum(x[:, ::2], x[:, 1::2]))
    lowered = tl.compile(pairs.ir, target=tl.Target("x86-64-v4")).lowered
    stmts = next(each for each in statements_of(lowered.body, For) if each.step == 64).body.stmts
    assert [phase for phase, _ in phases_of(stmts).values()] == [0, 0, 1]


@pytest.mark.parametrize("dtype", ["u8", "i8", "u16"])
def test_bytes_of_pairs_come_out_of_the_same_vectors_in_rows_of_any_length(dtype: str) -> None:
    """As they are, and as integers of 32 bits. Rows of fewer columns than a vector go by narrower ones."""
    source = f"""
n, m = tl.dims("n m")

@tl.kernel
def halved(x: tl.{dtype}[n, 2 * m + 1], y: tl.{dtype}[n, m], z: tl.{dtype}[n, m]):
    for i in range(n):
        for j in range(m):
            y[i, j] = max(max(x[i, 2 * j], x[i, 2 * j + 1]), x[i, 2 * j + 2])
            z[i, j] = tl.{dtype}((tl.i32(x[i, 2 * j]) + 3 * tl.i32(x[i, 2 * j + 1])) >> 2)
"""
    for name in [each for each in ("x86-64-v4", "x86-64-v3", "x86-64") if runs_here(each)]:
        kernel = tl.compile(tl.parse(source), target=tl.Target(name, workers=1))
        for columns in (1, 3, 4, 7, 8, 15, 16, 31, 33, 64, 100, 130):
            ends = np.iinfo(getattr(tl, dtype).numpy)
            x = np.random.default_rng(columns).integers(ends.min, ends.max + 1, (3, 2 * columns + 1), ends.dtype)
            y, z = np.zeros((2, 3, columns), ends.dtype)
            even, odd = x[:, :-1:2].astype(int), x[:, 1::2].astype(int)
            kernel(guarded(x, at_end=True), y, z)
            np.testing.assert_array_equal(y, np.maximum(np.maximum(even, odd), x[:, 2::2]))
            np.testing.assert_array_equal(z, even + 3 * odd >> 2)
    wide = tl.compile(tl.parse(source), target=tl.Target("x86-64-v4")).lowered
    assert {8, 4} <= {each.step for each in statements_of(wide.body, For)}


@pytest.mark.parametrize("terms", [1, 2, 3, 7, 30])
def test_terms_are_taken_by_groups_of_neighbours(terms: int) -> None:
    assert "p + 2" in str(every_third.lowered)
    for size in (1, 9, 32, 45):
        rng = np.random.default_rng(size)
        x, weights = rng.integers(-9, 9, 3 * size + terms - 3) * 1.0, rng.integers(-9, 9, terms) * 1.0
        wanted = [x[3 * i : 3 * i + terms] @ weights for i in range(size)]
        np.testing.assert_array_equal(every_third(guarded(x, at_end=True), weights), wanted)


def test_only_what_is_loaded_for_sure_makes_a_group() -> None:
    func = tl.parse("""
@tl.kernel
def f(x: tl.f32[64], y: tl.f32[4, 16], c: tl.i64):
    y[0, tl.ramp(0, 1, 16)] = x[tl.ramp(c, 2, 16)]
    if c > 3:
        y[1, tl.ramp(0, 1, 16)] = x[tl.ramp(c + 1, 2, 16)]
    y[2, tl.ramp(0, 1, 16)] = x[tl.ramp(c + 2, 2, 16)]
    y[3, tl.ramp(0, 1, 16)] = x[tl.ramp(c + 4, 2, 16)]
""")
    assert not phases_of(func.body.stmts)


@pytest.mark.parametrize("lanes", [2, 4, 8, 12, 32])
def test_all_four_of_groups_of_four(lanes: int) -> None:
    stores = "\n".join(
        f"        y[{each}, tl.ramp(i, 1, {lanes})] = x[tl.ramp(4 * i + {each}, 4, {lanes})]" for each in range(4)
    )
    source = f"""
@tl.kernel
def f(x: tl.i32[{12 * lanes}], y: tl.i32[4, {3 * lanes}]):
    for i in range(0, {3 * lanes}, {lanes}):
{stores}
"""
    x = np.arange(12 * lanes, dtype=np.int32)
    for name in [each for each in ("x86-64-v4", "x86-64-v3", "x86-64") if runs_here(each)]:
        y = np.zeros((4, 3 * lanes), np.int32)
        kernel = tl.compile(tl.parse(source), schedule=None, target=tl.Target(name, workers=1))
        kernel(guarded(x, at_end=True), y)
        np.testing.assert_array_equal(y, x.reshape(-1, 4).T)
        assert len(phases_of(next(statements_of(kernel.lowered.body, For)).body.stmts)) == 4
