"""A kernel in f64 and i64 means what Python makes of the same source: each function here is run both ways."""

from __future__ import annotations

import types
from collections.abc import Callable

import numpy as np
import pytest

import tirlite as tl
from tirlite import dsl, interp

f64, i64 = tl.f64, tl.i64
n = tl.dim("n")
OFFSET = 3
POWERS = (1, 2, 4)


def clamp(x: f64[n], y: f64[n], k: i64):
    for i in range(n):
        y[i] = min(max(x[i], -0.5), 0.5) if 0 < i < k <= n else abs(x[i])


def running_sum(x: f64[n], y: f64[n], k: i64):
    total = 0.0
    for i in range(n):
        total += x[i]
        y[i] = total / (i + 1)
    if total > 0 and not k < 2 or total < -1:
        y[0] = total
    elif k == 2:
        y[0] = -total


def backwards(x: f64[n], y: f64[n], k: i64):
    last = 1.0
    for i in range(n - 1, -1, -1):
        t = x[i] * last
        for j in range(k):
            t = t * 0.5 + j
        last = t
        y[i] = t
    for i in range(0, n, 2):
        t = y[i]
        y[i] = t - 1


def steps(x: f64[n], y: f64[n], k: i64):
    for i in range(n):
        value = i + OFFSET
        count = 0
        while value > 1:
            if value % 2 == 0:
                value //= 2
            else:
                value = 3 * value + 1
            count += 1
        y[i] = count + (value << 2 | 1) ** 1.0


def branches(x: f64[n], y: f64[n], k: i64):
    for i in range(n):
        if x[i] > 0:
            s = 1.0
            t = s + 1
            y[i] = t
        else:
            s = 2.0
            t = x[i]
        y[i] += s * t + -7 // 2 + 7 % -4 + 2**3 / 5


def several(x: f64[n], y: f64[n], k: i64):
    low = high = x[0]
    a, b = 0, 1
    for i in range(0, len(x), k + 1):
        low, high = min(low, x[i]), max(high, x[i])
        a, b = b, a + b
        y[0], y[i] = y[i], y[0] + b
        y[i] += i in (1, k, 4) and i not in POWERS
    y[0] += high - low


FUNCTIONS = [clamp, running_sum, backwards, steps, branches, several]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("size", [1, 2, 7])
@pytest.mark.parametrize("k", [0, 2, 5])
def test_a_kernel_means_what_python_means(function: Callable[..., None], size: int, k: int) -> None:
    func = dsl.translate(function, {}).func
    x = np.random.default_rng(size + k).normal(size=size)
    expected, found = np.zeros(size), np.zeros(size)
    # Python is to see a number where the kernel sees the dim.
    types.FunctionType(function.__code__, {**function.__globals__, "n": size})(x, expected, k)
    arguments = {**dict(zip(func.params, (x, found, k), strict=True)), **dict.fromkeys(func.dims, size)}
    interp.interpret(func, arguments)
    np.testing.assert_array_equal(found, expected)
