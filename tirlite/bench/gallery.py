"""Measures kernels of the gallery, built in several ways and called in turn: with checks, by workers, by rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from statistics import geometric_mean

import numpy as np

from tirlite import driver
from tirlite.bench.figures import Figure
from tirlite.bench.probes.forks import forks
from tirlite.cli.turns import medians
from tirlite.kernels.case import Case
from tirlite.kernels.gallery import CASES
from tirlite.target import Target

# How much slower checked code may be, and the microseconds of a fork, which are taken over so many.
DEBUG_BAR, FORK_BAR = 10.0, 1.0
FORKS = 2000

# Large enough for a call to take some tens of microseconds, small enough for most to stay in the caches.
SMALL: Mapping[str, tuple[int, ...]] = {
    "smoothstep": (1 << 16,),
    "gated": (1 << 16,),
    "matmul": (128, 128, 128),
    "matmul_tiled": (128, 128, 128),
    "matmul_i8": (128, 128, 128),
    "softmax": (256, 256),
    "layer_norm": (256, 256),
    "attention": (2, 64, 64, 64, 64),
    "argmax": (256, 256),
    "prefix_sum": (1 << 16,),
    "prefix_sum_blocks": (1 << 16,),
    "spmv": (4096, 1000),
    "convolution": (4, 4, 64, 64, 3, 3),
    "blur": (256, 256),
    "blur_u8": (256, 256),
    "jacobi": (128, 128, 5),
    "histogram": (1 << 16,),
    "histogram_split": (1 << 16,),
    "harris": (256, 256),
    "block_matmul": (64, 64, 64),
    "block_sum": (1 << 16,),
    "block_transpose": (256, 256),
}
# Large enough for a call to take a millisecond or more.
LARGE: Mapping[str, tuple[int, ...]] = {
    "smoothstep": (1 << 21,),
    "gated": (1 << 21,),
    "matmul": (256, 256, 256),
    "matmul_tiled": (512, 512, 512),
    "matmul_i8": (512, 512, 512),
    "softmax": (1024, 1024),
    "layer_norm": (1024, 1024),
    "attention": (4, 256, 256, 64, 64),
    "argmax": (2048, 1024),
    "prefix_sum_blocks": (1 << 16,),
    "spmv": (100_000, 100_000),
    "convolution": (16, 16, 56, 56, 3, 3),
    "blur": (1024, 1024),
    "blur_u8": (1024, 1024),
    "jacobi": (512, 512, 20),
    "harris": (1024, 1024),
}


def in_turn(
    case: Case, builds: Sequence[driver.Kernel], sizes: Mapping[str, tuple[int, ...]], runs: int, *, quick: bool
) -> tuple[list[float], str]:
    """The median seconds of each build of a kernel, and the size that it has; `quick` takes the tests' small size."""
    size = case.sizes[-1] if quick else sizes[case.kernel.name]
    arguments = case.inputs(np.random.default_rng(0), *size)
    seconds = medians([partial(build, *arguments) for build in builds], 3 if quick else runs)
    return seconds, " x ".join(map(str, size))


def debug_figures(*, quick: bool = False) -> Iterator[Figure]:
    """How many times as long each kernel takes with `debug=True`.

    Both run on one worker, as parallel loops of checked code run in order.
    """
    target = Target.host(workers=1)
    for case in CASES:
        builds = [driver.compile(case.kernel, target=target, debug=debug) for debug in (False, True)]
        (plain, checked), size = in_turn(case, builds, SMALL, 51, quick=quick)
        note = f"{1e6 * plain:.0f} us, with checks {1e6 * checked:.0f} us; size {size}"
        yield Figure(case.kernel.name, checked / plain, "x", DEBUG_BAR, note)


def parallel_figures(workers: int, *, quick: bool = False) -> Iterator[Figure]:
    """What a fork costs, and what is left of the time of kernels with parallel loops on one worker with so many."""
    targets = [Target.host(workers=1), Target.host(workers=workers)]
    yield _fork(targets, quick=quick)
    for case in CASES:
        builds = [driver.compile(case.kernel, target=target) for target in targets]
        if case.kernel.name not in LARGE or "tirlite.fork_join" not in builds[1].llvm:
            continue
        (alone, together), size = in_turn(case, builds, LARGE, 31, quick=quick)
        note = f"{1e3 * alone:.2f} ms alone, {1e3 * together:.2f} ms with {workers} workers; {size}"
        yield Figure(case.kernel.name, together / alone, "x", None, note)


def _fork(targets: Sequence[Target], *, quick: bool) -> Figure:
    """What it costs to hand out a loop and to wait for its end."""
    builds = [driver.compile(forks, target=target) for target in targets]
    times = 10 if quick else FORKS
    arguments = (np.zeros(1, np.int64), times, np.zeros(16, np.int64))
    alone, together = medians([partial(build, *arguments) for build in builds], 3 if quick else 31)
    workers = targets[1].workers
    return Figure("fork and join", 1e6 * (together - alone) / times, "us", FORK_BAR, f"a loop for {workers} workers")


def compact_figures(*, quick: bool = False) -> Iterator[Figure]:
    """What is left of each kernel's time where little is left of temporaries, and of all kernels' times.

    For kernels with storage to be planned, on one worker.
    """
    target = Target.host(workers=1)
    ratios: list[float] = []
    for case in (case for case in CASES if case.kernel.name in LARGE and case.kernel.plan.problem.requests):
        builds = [driver.compile(case.kernel, target=target, schedule=each) for each in ("auto", "compact")]
        (alone, together), _ = in_turn(case, builds, LARGE, 31, quick=quick)
        ratios.append(together / alone)
        before, after = (f"{each.plan.total}" for each in builds)
        note = f"{before} bytes -> {after}; {1e3 * alone:.2f} ms -> {1e3 * together:.2f} ms"
        yield Figure(case.kernel.name, ratios[-1], "x", None, note)
    yield Figure("all of them", geometric_mean(ratios), "x", None, "mean of these kernels")
