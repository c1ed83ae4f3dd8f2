"""Measures the price of checked code: how much slower each kernel of the gallery is with its checks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from tirlite import driver
from tirlite.bench.figures import Figure
from tirlite.cli.turns import medians
from tirlite.kernels.gallery import CASES
from tirlite.target import Target

BAR = 10.0

# Large enough for a call to take some tens of microseconds, small enough for most to stay in the caches.
SIZES: dict[str, tuple[int, ...]] = {
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


def debug_figures(*, quick: bool = False) -> Iterator[Figure]:
    """The ratio of the medians of both builds, called in turn, for each kernel. `quick` takes the tests' small sizes.

    Both run on one worker, as parallel loops of checked code run in order.
    """
    for case in CASES:
        kernel, target = case.kernel, Target.host(workers=1)
        size = case.sizes[-1] if quick else SIZES[kernel.name]
        arguments = case.inputs(np.random.default_rng(0), *size)
        builds = [driver.compile(kernel, target=target, debug=debug) for debug in (False, True)]
        plain, checked = medians([partial(build, *arguments) for build in builds], 3 if quick else 51)
        note = f"{1e6 * plain:.0f} us, with checks {1e6 * checked:.0f} us; size {' x '.join(map(str, size))}"
        yield Figure(kernel.name, checked / plain, "x", BAR, note)
