"""The memory of temporaries between calls."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tirlite as tl
from tirlite.runtime.workspace import MOST_BLOCKS, MOST_BYTES, Workspaces, process_workspaces

n = tl.dim("n")


def test_a_block_is_used_again_by_a_call_that_it_fits() -> None:
    pool = Workspaces()
    large, small = pool.take(1000), pool.take(10)
    pool.give(large)
    pool.give(small)
    assert pool.take(10) is small
    assert pool.take(900) is large
    assert pool.idle_bytes == 0


def test_calls_in_turns_have_the_memory_of_the_largest() -> None:
    pool = Workspaces()
    for size in (100, 300, 200, 100):
        pool.give(pool.take(size))
    assert pool.idle_bytes == 300


def test_what_is_kept_is_bounded() -> None:
    pool = Workspaces()
    for block in [pool.take(size) for size in range(100, 120)]:
        pool.give(block)
    assert pool.idle_bytes == sum(range(120 - MOST_BLOCKS, 120))
    huge = pool.take(MOST_BYTES + 1)
    pool.give(huge)
    assert pool.idle_bytes <= MOST_BYTES
    assert pool.take(110) is not huge


def test_more_than_there_is_raises_memory_error() -> None:
    for size in (2**61, 2**63 + 5):
        with pytest.raises(MemoryError):
            Workspaces().take(size)


def test_addresses_are_aligned() -> None:
    for alignment in (64, 4096):
        block = Workspaces().take(5000)
        assert block.aligned(alignment) % alignment == 0
        assert 0 <= block.aligned(alignment) - block.start < alignment


@tl.kernel(strategy="none")
def twice(x: tl.f64[n], y: tl.out[tl.f64[n]]):
    t = tl.alloc(tl.f64[n])
    for i in range(n):
        t[i] = x[i]
    for i in range(n):
        y[i] = t[i] + t[n - 1 - i]
    assert y[0] < 1000, "large"


def test_threads_have_workspaces_of_their_own() -> None:
    def work(number: int) -> bool:
        x = np.full(5000, number, np.float64)
        return all(bool((twice(x) == 2 * number).all()) for _ in range(50))

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(16)))


def test_a_block_comes_back_when_an_assert_fires(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Workspaces()
    kernel = tl.compile(twice)
    kernel(np.zeros(4))
    monkeypatch.setattr(kernel._version.executable, "_workspaces", pool)
    sizes = set()
    for _ in range(5):
        with pytest.raises(tl.KernelAssertionError, match="large"):
            kernel(np.full(100, 1e6))
        sizes.add(pool.idle_bytes)
    assert len(sizes) == 1
    assert sizes.pop() >= 800


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_fork_in_the_midst_of_a_call_leaves_the_child_free() -> None:
    def work() -> None:
        assert (twice(np.ones(100)) == 2).all()

    work()
    child = multiprocessing.get_context("fork").Process(target=work)
    with process_workspaces()._lock:
        child.start()
    child.join(20)
    child.kill()
    child.join()
    assert child.exitcode == 0


def test_zeros_of_both_signs_have_sizes_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    @tl.kernel(strategy="none")
    def signed(gain: tl.f64, y: tl.out[tl.f64[1]]):
        t = tl.alloc(tl.f64[tl.select(1.0 / gain > 0.0, 4096, 1)])
        t[0] = gain
        for i in range(1):
            y[i] = t[i]

    pool = Workspaces()
    signed(1.0)
    monkeypatch.setattr(signed._version.executable, "_workspaces", pool)
    signed(-0.0)
    assert pool.idle_bytes < 4096
    signed(0.0)
    assert pool.idle_bytes > 4096 * 8
