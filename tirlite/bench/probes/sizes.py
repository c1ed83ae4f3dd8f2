# mypy: ignore-errors
# Annotations like `tl.f32[n]` are not types to mypy.
"""Compares kernels under the default schedule and under none, over pairs of extents; prints the worst pairs first.

python -m tirlite.bench.probes.sizes [seconds for all pairs] [kernels...]

A schedule made for large extents must not slow small ones down by more than a tenth.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import product
from math import exp, inf, log
from time import perf_counter

import numpy as np

import tirlite as tl
from tirlite.bench.definitions import blur, matmul_f32, softmax

EXTENTS = (1, 2, 7, 16, 31, 64, 100, 127, 1000)
LIMIT = 1.1
_LEAST = 20e-6  # seconds of one sample
_SHOWN = 40
n, m = tl.dims("n m")


@tl.kernel
def added(x: tl.f32[n, m], y: tl.f32[n, m], z: tl.f32[n, m]):
    for i in range(n):
        for j in range(m):
            z[i, j] = x[i, j] + y[i, j]


@tl.kernel(allow="contract")
def row_sums(x: tl.f32[n, m], y: tl.f32[n]):
    for i in range(n):
        s = tl.f32(0)
        for j in tl.reduce(m):
            s += x[i, j]
        y[i] = s


@tl.kernel
def ordered_sums(x: tl.f32[n, m], y: tl.f32[n]):
    for i in range(n):
        s = tl.f32(0)
        for j in range(m):
            s += x[i, j]
        y[i] = s


@tl.kernel(allow="contract")
def column_sums(x: tl.f32[n, m], y: tl.f32[m]):
    for j in range(m):
        y[j] = 0
    for i in tl.reduce(n):
        for j in range(m):
            y[j] += x[i, j]


@tl.kernel(allow="contract")
def narrow_matmul(a: tl.f32[n, 16], b: tl.f32[16, m], y: tl.f32[n, m]):
    for i in range(n):
        for j in range(m):
            s = tl.f32(0)
            for p in tl.reduce(16):
                s += a[i, p] * b[p, j]
            y[i, j] = s


@tl.kernel
def transposed(x: tl.f32[n, m], y: tl.f32[m, n]):
    for i in range(n):
        for j in range(m):
            y[j, i] = x[i, j]


@tl.kernel(allow="contract")
def convolved(x: tl.f32[n + 2, m + 2], f: tl.f32[3, 3], y: tl.f32[n, m]):
    for i in range(n):
        for j in range(m):
            s = tl.f32(0)
            for u in tl.reduce(3):
                for v in tl.reduce(3):
                    s += x[i + u, j + v] * f[u, v]
            y[i, j] = s


Shapes = Callable[[int, int], list[tuple[int, ...]]]

KERNELS: dict[str, tuple[tl.Kernel, Shapes]] = {
    each.name: (each, shapes)
    for each, shapes in (
        (added, lambda n, m: [(n, m)] * 3),
        (row_sums, lambda n, m: [(n, m), (n,)]),
        (ordered_sums, lambda n, m: [(n, m), (n,)]),
        (column_sums, lambda n, m: [(n, m), (m,)]),
        (matmul_f32, lambda n, m: [(n, m), (m, n), (n, n)]),
        (narrow_matmul, lambda n, m: [(n, 16), (16, m), (n, m)]),
        (transposed, lambda n, m: [(n, m), (m, n)]),
        (blur, lambda n, m: [(n + 2, m + 2), (n, m)]),
        (softmax, lambda n, m: [(n, m)] * 2),
        (convolved, lambda n, m: [(n + 2, m + 2), (3, 3), (n, m)]),
    )
}


def _seconds(call: Callable[..., object], arrays: list[np.ndarray], times: int) -> float:
    start = perf_counter()
    for _ in range(times):
        call(*arrays)
    return (perf_counter() - start) / times


def ratio_of(scheduled: tl.Kernel, plain: tl.Kernel, arrays: list[np.ndarray], budget: float) -> float:
    """The first kernel's least time by the second's. They run in turns: for `budget` seconds, at least three times."""
    calls = (scheduled, plain)
    first = max(_seconds(call, arrays, 1) for call in calls)
    first = max(_seconds(call, arrays, 1) for call in calls)
    times = max(1, round(_LEAST / first))
    best = [inf, inf]
    end = perf_counter() + budget
    turns = 0
    while turns < 3 or perf_counter() < end:
        for side, call in enumerate(calls):
            best[side] = min(best[side], _seconds(call, arrays, times))
        turns += 1
    return best[0] / best[1]


def ratios(names: list[str], budget: float) -> Iterator[tuple[float, str, int, int]]:
    """The time ratio of each kernel at each pair of extents."""
    target = tl.Target.host(workers=1)
    rng = np.random.default_rng(0)
    for name in names:
        kernel, shapes = KERNELS[name]
        made = tl.compile(kernel, target=target), tl.compile(kernel, target=target, schedule=None)
        for extents in product(EXTENTS, repeat=2):
            arrays = [rng.standard_normal(shape, dtype=np.float32) for shape in shapes(*extents)]
            yield ratio_of(*made, arrays, budget), name, *extents


def main(argv: list[str]) -> None:
    names = argv[1:] or list(KERNELS)
    seconds = float(argv[0]) if argv else 60.0
    found = sorted(ratios(names, seconds / (len(names) * len(EXTENTS) ** 2)), reverse=True)
    above = [each for each in found if each[0] > LIMIT]
    for ratio, name, rows, columns in above[:_SHOWN]:
        print(f"{ratio:6.2f}  {name} {rows} x {columns}")
    for name in names:
        own = [ratio for ratio, kernel, *_ in found if kernel == name]
        worse = sum(ratio > LIMIT for ratio in own)
        print(f"{name}: geomean {exp(sum(map(log, own)) / len(own)):.2f}, above {LIMIT}: {worse} of {len(own)}")
    print(f"above {LIMIT}: {len(above)} of {len(found)} pairs")


if __name__ == "__main__":
    main(sys.argv[1:])
