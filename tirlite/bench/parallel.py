"""Measures what a number of workers bring: the times of the parallel kernels of the gallery, the cost of a fork."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from tirlite import driver
from tirlite.bench.figures import Figure
from tirlite.bench.probes.forks import forks
from tirlite.cli.turns import medians
from tirlite.kernels.gallery import CASES
from tirlite.target import Target

FORK_BAR = 1.0  # microseconds
TIMES = 2000

# Large enough for a call to take a millisecond or more.
SIZES: dict[str, tuple[int, ...]] = {
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


def parallel_figures(workers: int, *, quick: bool = False) -> Iterator[Figure]:
    """What is left of the time on one worker with so many, called in turn. `quick` takes the tests' small sizes."""
    targets = [Target.host(workers=1), Target.host(workers=workers)]
    yield _fork(targets, quick=quick)
    for case in CASES:
        kernel = case.kernel
        builds = [driver.compile(kernel, target=target) for target in targets]
        if kernel.name not in SIZES or "tirlite.fork_join" not in builds[1].llvm:
            continue
        size = case.sizes[-1] if quick else SIZES[kernel.name]
        arguments = case.inputs(np.random.default_rng(0), *size)
        alone, together = medians([partial(build, *arguments) for build in builds], 3 if quick else 31)
        note = (
            f"{1e3 * alone:.2f} ms alone, {1e3 * together:.2f} ms with {workers} workers; {' x '.join(map(str, size))}"
        )
        yield Figure(kernel.name, together / alone, "x", None, note)


def _fork(targets: list[Target], *, quick: bool) -> Figure:
    """What it costs to hand out a loop and to wait for its end."""
    builds = [driver.compile(forks, target=target) for target in targets]
    times = 10 if quick else TIMES
    arguments = (np.zeros(1, np.int64), times, np.zeros(16, np.int64))
    alone, together = medians([partial(build, *arguments) for build in builds], 3 if quick else 31)
    workers = targets[1].workers
    return Figure("fork and join", 1e6 * (together - alone) / times, "us", FORK_BAR, f"a loop for {workers} workers")
