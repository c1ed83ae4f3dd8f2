"""Vectors of results that no cache holds go past the caches."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import tirlite as tl
from tirlite.driver.build import Version, version_of
from tirlite.driver.front import Front
from tirlite.rewrite.forms import Form
from tirlite.runtime import Binder, held
from tirlite.target.processor import runs_here

n, m = tl.dims("n m")
TARGET = tl.Target("x86-64-v3")


@pytest.fixture(autouse=True)
def caches_hold_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    never = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda _size: 0)
    monkeypatch.setattr(held, "holds_address", lambda: ctypes.cast(never, ctypes.c_void_p).value)


@tl.kernel
def grown(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for i in range(n):
        y[i] = tl.exp(x[i])


@tl.kernel
def grown_in_place(y: tl.f32[n]):
    for i in range(n):
        y[i] = tl.exp(y[i])


@tl.kernel
def doubled(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for i in range(n):
        y[i] = 2 * x[i]


@tl.kernel
def rounded(x: tl.f32[n], y: tl.out[tl.u8[n]]):
    for i in range(n):
        y[i] = tl.u8(x[i])


@tl.kernel
def few(x: tl.f32[4096], y: tl.out[tl.f32[4096]]):
    for i in range(4096):
        y[i] = tl.exp(x[i])


def version_past_caches(kernel: tl.Kernel) -> str:
    """The LLVM text of the version for large arrays."""
    made = tl.compile(kernel, target=TARGET)
    return version_of(Front(made.ir), made.options, is_empty=False, form=Form.LARGE).lowered.text


def test_what_is_read_or_fits_into_caches_is_stored_there() -> None:
    for kernel, streams in ((grown, True), (doubled, True), (rounded, False), (grown_in_place, False), (few, False)):
        text = version_past_caches(kernel)
        assert ("!nontemporal" in text) is streams
        assert ("sfence" in text) is streams
    assert "!nontemporal" not in tl.compile(grown, target=tl.Target("aarch64")).llvm


def test_of_rows_that_are_no_whole_vectors_long_ones_alone_go_past_the_caches() -> None:
    def moved(width: int) -> tl.Kernel:
        @tl.kernel
        def kernel(x: tl.f32[n, width], a: tl.f32[n], y: tl.out[tl.f32[n, width]]):
            for i in range(n):
                for j in range(width):
                    y[i, j] = x[i, j] + a[i]

        return kernel

    for width, streams in ((128, False), (256, True), (500, False), (1100, True)):
        assert ("!nontemporal" in version_past_caches(moved(width))) is streams, width


def test_plain_loops_go_past_the_caches_in_a_version_of_their_own() -> None:
    assert "!nontemporal" not in tl.compile(doubled, target=TARGET).llvm
    assert "!nontemporal" in tl.compile(grown, target=TARGET).llvm


@tl.kernel
def centred(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
    for i in range(n):
        total, square = tl.f32(0), tl.f32(0)
        for j in tl.reduce(m):
            total += x[i, j]
        for j in tl.reduce(m):
            square += x[i, j] * x[i, j]
        for j in range(m):
            y[i, j] = (x[i, j] - total) / square


def test_longer_rows_go_past_the_caches_where_short_ones_have_a_lane_each() -> None:
    usual = tl.compile(centred, target=TARGET)
    assert "if n >= 16 and m <= " in str(usual.lowered)
    assert "!nontemporal" not in usual.llvm
    assert usual._version.rewritten.limits.large_from > 0
    assert "!nontemporal" in version_past_caches(centred)


def test_a_row_that_was_read_before_asks_for_the_next_one_as_it_goes_past_the_caches() -> None:
    lines = 256 // 64
    text = version_past_caches(centred)
    past = text[text.index("!nontemporal") :]
    assert past[: past.index("br label")].count("@llvm.prefetch") == lines  # of x, one row further
    assert "call void @llvm.prefetch.p0(ptr %p" not in version_past_caches(doubled)


@pytest.mark.skipif(not runs_here(TARGET.name), reason="code for another machine")
def test_the_version_for_large_arrays_is_made_when_some_come_and_serves_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held, ran = TARGET.processor.caches[-1] * 3 // 4, []
    run = Version.run
    monkeypatch.setattr(Version, "run", lambda self, binding: ran.append(self.form) or run(self, binding))
    kernel = tl.compile(doubled, target=TARGET)
    small, large = (np.ones(size, np.float32) for size in (held // 8 - 1, held // 8))
    wide = np.ones((held // 8, 2), np.float32)[:, 0]
    for x in (small, large, wide, large[:0], small):
        np.testing.assert_array_equal(kernel(x), 2 * x)
    assert ran == [Form.USUAL, Form.LARGE, Form.LARGE, Form.USUAL, Form.USUAL]
    assert kernel.profile(large) is not None


@pytest.mark.skipif(not runs_here(TARGET.name), reason="code for another machine")
def test_quick_calls_find_the_version_for_large_arrays_whichever_came_first(monkeypatch: pytest.MonkeyPatch) -> None:
    size = TARGET.processor.caches[-1] * 3 // 32
    for first, second in ((size, 100), (100, size)):
        kernel = tl.compile(doubled, target=TARGET)
        for count in (first, second):
            x, y = np.ones(count, np.float32), np.empty(count, np.float32)
            for _ in range(4):
                kernel(x, y)
        forms = [version.form for _, version in kernel._quick_versions]
        assert forms == ([Form.LARGE, Form.USUAL] if first > second else [Form.USUAL, Form.LARGE])
        with monkeypatch.context() as patched:
            patched.setattr(Binder, "bind", None)
            for count in (first, second):
                x, y = np.ones(count, np.float32), np.zeros(count, np.float32)
                kernel(x, y)
                np.testing.assert_array_equal(y, 2 * x)


def test_all_arrays_together_decide_and_a_result_that_is_a_part_of_them() -> None:
    cache = TARGET.processor.caches[-1] // 4

    def scaled(read: int, written: int) -> tl.Kernel:
        @tl.kernel
        def kernel(x: tl.f32[read], y: tl.out[tl.f32[written]]):
            for i in range(written):
                y[i] = 2 * x[i]

        return kernel

    for read, written, streams in (
        (cache // 2, cache // 2, True),
        (cache // 4, cache // 4, False),
        (cache, 4096, False),
    ):
        assert ("!nontemporal" in tl.compile(scaled(read, written), target=TARGET).llvm) is streams


@pytest.mark.skipif(not runs_here(TARGET.name), reason="code for another machine")
def test_results_larger_than_caches_at_all_addresses() -> None:
    size = TARGET.processor.caches[-1] // 4 + 77
    numbers = np.random.default_rng(0).normal(size=size + 1).astype(np.float32)
    memory = np.empty(size + 8, np.float32)
    for kernel in (grown, doubled):
        fast, wanted = tl.compile(kernel, target=TARGET), tl.compile(kernel, schedule=None)(numbers)
        for begin in (0, 1, 4):
            found = memory[begin : begin + size]
            fast(numbers[1:], found)
            np.testing.assert_array_equal(found, wanted[1:])


@pytest.mark.skipif(not runs_here(TARGET.name), reason="code for another machine")
def test_rows_that_begin_anywhere_go_past_the_caches_but_for_their_ends() -> None:
    h, w = tl.dims("h w")

    @tl.kernel
    def both(x: tl.f32[h, w], y: tl.out[tl.f32[h, w]], z: tl.out[tl.f32[h, w]]):
        for i in range(h):
            for j in range(w):
                y[i, j] = 2 * x[i, j]
                z[i, j] = x[i, j] + 1

    fast = tl.compile(both, target=TARGET)
    for width in (1, 255, 256, 257, 259, 262, 515, 960, 1026, 1100):
        rows = TARGET.processor.caches[-1] // (8 * width) + 3
        x = np.arange(rows * width, dtype=np.float32).reshape(rows, width)
        memory = np.full((2, rows * width + 2), -1, np.float32)
        y, z = (each[1:-1].reshape(rows, width) for each in memory)
        fast(x, y, z)
        np.testing.assert_array_equal(y, 2 * x)
        np.testing.assert_array_equal(z, x + 1)
        assert (memory[:, [0, -1]] == -1).all()
