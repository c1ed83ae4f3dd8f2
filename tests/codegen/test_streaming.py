"""Vectors of results that no cache holds go past the caches."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite.target.processor import runs_here

n = tl.dim("n")
TARGET = tl.Target("x86-64-v3")


@tl.kernel
def grown(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for i in range(n):
        y[i] = tl.exp(x[i])


@tl.kernel
def grown_in_place(y: tl.f32[n]):
    for i in range(n):
        y[i] = tl.exp(y[i])


@tl.kernel
def few(x: tl.f32[4096], y: tl.out[tl.f32[4096]]):
    for i in range(4096):
        y[i] = tl.exp(x[i])


def test_what_is_read_or_fits_into_caches_is_stored_there() -> None:
    for kernel, streams in ((grown, True), (grown_in_place, False), (few, False)):
        text = tl.compile(kernel, target=TARGET).llvm
        assert ("!nontemporal" in text) is streams
        assert ("sfence" in text) is streams
    assert "!nontemporal" not in tl.compile(grown, target=tl.Target("aarch64")).llvm


@pytest.mark.skipif(not runs_here(TARGET.name), reason="code for another machine")
def test_results_larger_than_caches_at_all_addresses() -> None:
    fast = tl.compile(grown, target=TARGET)
    size = TARGET.processor.caches[-1] // 4 + 77
    numbers = np.random.default_rng(0).normal(size=size + 1).astype(np.float32)
    wanted = tl.compile(grown, schedule=None)(numbers)
    memory = np.empty(size + 8, np.float32)
    for begin in (0, 1, 4):
        found = memory[begin : begin + size]
        fast(numbers[1:], found)
        np.testing.assert_array_equal(found, wanted[1:])
