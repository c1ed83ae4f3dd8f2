"""Measures what the passes that take storage away bring on the gallery: times with and without, and bytes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod

import numpy as np

from tirlite import driver
from tirlite.bench.figures import Figure
from tirlite.bench.parallel import SIZES
from tirlite.cli.turns import medians
from tirlite.kernels.case import Case
from tirlite.kernels.gallery import CASES
from tirlite.rewrite import CONTRACTION
from tirlite.target import Target


def passes_figures(*, quick: bool = False) -> Iterator[Figure]:
    """What is left of each kernel's time with all passes, then of all kernels' times with all but one of them.

    For kernels with storage to be planned, on one worker. `quick` takes the tests' small sizes.
    """
    chosen = [case for case in CASES if case.kernel.name in SIZES and case.kernel.plan.problem.requests]
    ratios: dict[str, list[float]] = {}
    for case in chosen:
        builds = _builds(case)
        arguments = _arguments(case, quick=quick)
        seconds = medians([partial(build, *arguments) for build in builds.values()], 3 if quick else 31)
        alone, together = seconds[0], seconds[1]
        for name, own in zip(builds, seconds, strict=True):
            ratios.setdefault(name, []).append(own / alone)
        before, after = (f"{builds[name].plan.total}" for name in ("none", "all"))
        note = f"{before} bytes -> {after}; {1e3 * alone:.2f} ms -> {1e3 * together:.2f} ms"
        yield Figure(case.kernel.name, together / alone, "x", None, note)
    for name, values in ratios.items():
        if name != "none":
            label = "all passes" if name == "all" else f"without {name}"
            yield Figure(label, prod(values) ** (1 / len(values)), "x", None, "mean of these kernels")


def _builds(case: Case) -> dict[str, driver.Kernel]:
    """The kernel without passes, with all, and with all but one."""
    target = Target.host(workers=1)
    choices = {"none": (), "all": CONTRACTION}
    choices |= {each.name: tuple(other for other in CONTRACTION if other != each) for each in CONTRACTION}
    return {name: driver.compile(case.kernel, target=target, passes=passes) for name, passes in choices.items()}


def _arguments(case: Case, *, quick: bool) -> tuple[object, ...]:
    size = case.sizes[-1] if quick else SIZES[case.kernel.name]
    return case.inputs(np.random.default_rng(0), *size)
