"""Signals reach kernels that run for long, and kernels end with what their handlers raise."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import tirlite as tl

n = tl.dim("n")
FOREVER = 10**11  # iterations, some minutes


@tl.kernel(target=tl.Target.host(workers=1))
def in_order(x: tl.f64[n], y: tl.out[tl.f64[n]], times: tl.i64):
    for i in range(n):
        y[i] = x[i]
        for _ in range(times):
            y[i] = y[i] * 0.5 + 0.5


@tl.kernel(target=tl.Target.host(workers=2))
def by_workers(x: tl.f64[n], y: tl.out[tl.f64[n]], times: tl.i64):
    for i in tl.parallel(n):
        y[i] = x[i]
        for _ in range(times):
            y[i] = y[i] * 0.5 + 0.5


@tl.kernel
def backwards(x: tl.f64[n], y: tl.out[tl.f64[n]], times: tl.i64):
    for i in range(n):
        y[i] = x[i]
    for _ in range(times, 0, -1):
        y[0] = y[0] * 0.5 + 0.5


@tl.kernel
def until(x: tl.f64[n], y: tl.out[tl.f64[n]], times: tl.i64):
    for i in range(n):
        y[i] = x[i]
    left = times
    while left > 0:
        left = left - 1
        y[0] = y[0] * 0.5 + 0.5


@tl.kernel
def nest(x: tl.f64[n], y: tl.out[tl.f64[n]], times: tl.i64):
    for i in range(n):
        y[i] = x[i]
    for _ in range(times):
        for i in range(n):
            y[i] = y[i] * 0.5 + 0.5


@tl.kernel
def searches(x: tl.f64[n], y: tl.out[tl.f64[n]], times: tl.i64):
    for i in range(n):
        y[i] = x[i]
    for _ in range(times):
        at = tl.i64(0)
        while at < n and y[at] > 0:
            at += 1
        y[at - 1] = y[at - 1] * 0.5 + 0.5


@tl.kernel
def searches_back(x: tl.f64[n], y: tl.out[tl.f64[n]], times: tl.i64):
    for i in range(n):
        y[i] = x[i]
    for _ in range(times):
        at = n
        while at > 0 and y[at - 1] > 0:
            at -= 1
        y[at] = y[at] * 0.5 + 0.5


@tl.kernel
def searches_until(x: tl.f64[n], y: tl.out[tl.f64[n]], times: tl.i64):
    for i in range(n):
        y[i] = x[i]
    left = times
    while left > 0:
        left = left - 1
        at = tl.i64(0)
        while at < n and y[at] > 0:
            at += 1
        y[at - 1] = y[at - 1] * 0.5 + 0.5


@tl.kernel
def deep(x: tl.f64[n], y: tl.out[tl.f64[n]], times: tl.i64):
    for i in range(n):
        y[i] = x[i]
    left = times
    while left > 0:
        left = left - 1
        for k in range(left % 2 + 1):
            for i in range(n):
                y[i] = y[i] * 0.5 + 0.5 + k * 0.0


@tl.kernel
def halves(x: tl.f64[n], y: tl.out[tl.f64[n]], times: tl.i64):
    for i in range(n):
        y[i] = x[i]
    for _ in range(times):
        left = tl.i64(1000)
        while left > 0:
            left >>= 1
        y[left] = y[left] * 0.5 + 0.5


LONG = [in_order, by_workers, backwards, until, nest, searches, searches_back, searches_until, deep, halves]


class Rung(Exception):
    """What a handler raises."""


@contextmanager
def ringing(seconds: float) -> Iterator[None]:
    """A signal comes in after so long, whose handler raises Rung."""

    def ring(*_: object) -> None:
        raise Rung

    before = signal.signal(signal.SIGINT, ring)
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
        timer.join()
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to oneself")
@pytest.mark.parametrize("kernel", LONG, ids=lambda each: each.ir.name)
@pytest.mark.parametrize("size", [1, 3000])
def test_a_handler_ends_a_kernel(kernel: Callable[..., np.ndarray], size: int) -> None:
    x = np.ones(size)
    kernel(x, 1)
    with pytest.raises(Rung), ringing(0.05):
        kernel(x, FOREVER)
    once = {backwards: 0, until: 0, searches: size - 1, searches_back: 0, searches_until: size - 1, halves: 0}
    wanted = np.full(size, 2.0 + (kernel in once))
    wanted[once.get(kernel, 0)] = 2
    np.testing.assert_array_equal(kernel(3 * x, 1), wanted)


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to oneself")
@pytest.mark.parametrize("kernel", [in_order, by_workers], ids=["in order", "by workers"])
def test_a_kernel_in_another_thread_goes_on(kernel: Callable[..., np.ndarray]) -> None:
    x, found = np.full(4, 3.0), []
    thread = threading.Thread(target=lambda: found.append(kernel(x, 20_000_000)))
    thread.start()
    with pytest.raises(Rung), ringing(0.02):
        in_order(x, FOREVER)
    thread.join()
    assert found[0].tolist() == [1.0] * 4


def test_iterations_that_do_nothing_are_no_work() -> None:
    @tl.kernel
    def idle(x: tl.f64[n], y: tl.out[tl.f64[n]], times: tl.i64):
        for i in range(n):
            y[i] = x[i]
            for _t in range(times):
                for _k in range(5, 2):
                    y[i] = y[i] * 0.5 + 0.5

    assert idle(np.arange(4.0), 1000).tolist() == [0.0, 1.0, 2.0, 3.0]


def test_short_loops_along_arrays_do_not_ask() -> None:
    @tl.kernel
    def add(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        for i in range(n):
            y[i] = x[i] + 1

    @tl.kernel
    def twice_each_way(x: tl.f32[n], y: tl.out[tl.f32[2, 2 * n]]):
        for i in range(n):
            for u in range(2):
                for v in range(2):
                    y[u, 2 * i + v] = x[i]

    assert "tirlite.poll" not in add.llvm
    assert "tirlite.poll" not in twice_each_way.llvm
    # A loop asks between parts of it, which have no test for that; the searches in it ask for themselves.
    assert searches.llvm.count("call preserve_mostcc i64 @tirlite.ask") == 3
    assert searches_back.llvm.count("call preserve_mostcc i64 @tirlite.ask") == 2
    # What is passed in searches counts for a loop around them that counts itself.
    assert searches_until.llvm.count("call preserve_mostcc i64 @tirlite.ask") == 1
    # A number that is halved until it is 0 takes some turns at most.
    assert halves.llvm.count("call preserve_mostcc i64 @tirlite.ask") == 1
    assert "tirlite.poll" in in_order.llvm


def test_loops_go_on_behind_polls_with_what_they_had() -> None:
    @tl.kernel
    def mixes(out: tl.out[tl.f64[5]], seed: tl.u64, times: tl.i64):
        a = seed
        b = seed ^ 12345
        c = tl.i64(0)
        x = 0.5
        y = tl.f32(0.25)
        left = times
        while left > 0:
            a ^= a << 13
            a ^= a >> 7
            a ^= a << 17
            b = b * 6364136223846793005 + a
            c += tl.i64(b >> 60)
            x = x * 3.5 * (1.0 - x)
            y += tl.f32(b >> 63)
            left -= 1
        out[0] = tl.f64(a >> 11)
        out[1] = tl.f64(b >> 11)
        out[2] = tl.f64(c)
        out[3] = x
        out[4] = tl.f64(y)

    a, b, c, x, y = 88172645463325252, 88172645463325252 ^ 12345, 0, 0.5, 0.25
    mask = 2**64 - 1
    for _ in range(150_000):
        a ^= (a << 13) & mask
        a ^= a >> 7
        a ^= (a << 17) & mask
        b = (b * 6364136223846793005 + a) & mask
        c += b >> 60
        x = x * 3.5 * (1.0 - x)
        y += b >> 63
    assert mixes(88172645463325252, 150_000).tolist() == [a >> 11, b >> 11, c, x, y]
