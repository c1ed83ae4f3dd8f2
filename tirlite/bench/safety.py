"""Measures the price of safety: the time of each kernel of the gallery beside the same one with `unchecked=True`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import exp, log

import numpy as np

from tirlite import driver
from tirlite.bench.debug import SIZES
from tirlite.bench.figures import Figure
from tirlite.cli.turns import medians
from tirlite.kernels.gallery import CASES

# The most that one kernel, and that all of them together, may take for it.
BAR, BAR_IN_ALL = 1.25, 1.05
# Accesses that are neither proved nor decided outside of all loops, and what code may grow.
MOST_CHECKED, MOST_CODE = 0.05, 1.1


def safety_figures(*, quick: bool = False) -> Iterator[Figure]:
    """Ratios of medians of calls in turn, one a kernel and their mean; accesses; and the growth of code.

    `quick` takes the tests' small sizes.
    """
    ratios, checked, accesses = [], 0, 0
    code = {True: 0, False: 0}
    for case in CASES:
        kernel = case.kernel
        size = case.sizes[-1] if quick else SIZES[kernel.name]
        arguments = case.inputs(np.random.default_rng(0), *size)
        builds = {unchecked: driver.compile(kernel, unchecked=unchecked) for unchecked in (True, False)}
        bare, safe = medians([partial(build, *arguments) for build in builds.values()], 3 if quick else 101)
        for unchecked, build in builds.items():
            code[unchecked] += len(build.asm)
        report = kernel.safety
        checked += report.count("checked")
        accesses += len(report)
        ratios.append(safe / bare)
        note = f"{1e6 * bare:.0f} us, safe {1e6 * safe:.0f} us; {report!r}"
        yield Figure(kernel.name, safe / bare, "x", None if quick else BAR, note)
    yield Figure("geometric mean", exp(sum(map(log, ratios)) / len(ratios)), "x", None if quick else BAR_IN_ALL)
    yield Figure("accesses checked where they stand", checked / accesses, "", MOST_CHECKED, f"{checked} of {accesses}")
    yield Figure("assembly beside unchecked", code[False] / code[True], "x", MOST_CODE, f"{code[False]} bytes of text")
