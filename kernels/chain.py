"""Element-wise chains: one stage after the other over a whole array, each with a temporary of its own."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.kernels.case import Case

n = tl.dim("n")


@tl.kernel
def smoothstep(x: tl.f32[n], low: tl.f32, high: tl.f32, y: tl.out[tl.f32[n]]):
    """A smooth rise of y from 0 where x is `low` to 1 where x is `high`."""
    scaled = tl.alloc(tl.f32[n])
    t = tl.alloc(tl.f32[n])
    square = tl.alloc(tl.f32[n])
    slope = tl.alloc(tl.f32[n])
    for i in tl.parallel(n):
        scaled[i] = (x[i] - low) / (high - low)
    for i in tl.parallel(n):
        t[i] = min(max(scaled[i], 0), 1)
    for i in tl.parallel(n):
        square[i] = t[i] * t[i]
    for i in tl.parallel(n):
        slope[i] = 3 - 2 * t[i]
    for i in tl.parallel(n):
        y[i] = square[i] * slope[i]


@tl.kernel
def gated(a: tl.f32[n], b: tl.f32[n], c: tl.f32[n], y: tl.out[tl.f32[n]]):
    """y = exp(a * b + c) * tanh(a)."""
    product = tl.alloc(tl.f32[n])
    total = tl.alloc(tl.f32[n])
    growth = tl.alloc(tl.f32[n])
    gate = tl.alloc(tl.f32[n])
    for i in tl.parallel(n):
        product[i] = a[i] * b[i]
    for i in tl.parallel(n):
        total[i] = product[i] + c[i]
    for i in tl.parallel(n):
        growth[i] = tl.exp(total[i])
    for i in tl.parallel(n):
        gate[i] = tl.tanh(a[i])
    for i in tl.parallel(n):
        y[i] = growth[i] * gate[i]


def smoothstep_reference(x: np.ndarray, low: np.float32, high: np.float32) -> np.ndarray:
    t = np.clip((x - low) / (high - low), 0, 1)
    return t * t * (3 - 2 * t)


def gated_reference(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return np.exp(a * b + c) * np.tanh(a)


def smoothstep_inputs(rng: np.random.Generator, n: int) -> tuple[object, ...]:
    return rng.uniform(-1, 2, n).astype(np.float32), np.float32(0.25), np.float32(0.75)


def gated_inputs(rng: np.random.Generator, n: int) -> tuple[object, ...]:
    return tuple(rng.standard_normal(n, np.float32) for _ in range(3))


KERNELS = (smoothstep, gated)
SIZES = ((0,), (1,), (7,), (100,))
CASES = (
    Case(smoothstep, smoothstep_reference, smoothstep_inputs, SIZES),
    Case(gated, gated_reference, gated_inputs, SIZES, tolerance=1e-6),
)
