"""Measures the price of safety: the time of each kernel of the gallery beside the same one with `unchecked=True`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import exp, log
from pathlib import Path
from time import process_time
from types import MappingProxyType

import numpy as np

from tirlite import driver
from tirlite.bench.debug import SIZES
from tirlite.bench.executed import executed, plain_arguments
from tirlite.bench.figures import Figure
from tirlite.cli.kernel_file import kernels_in
from tirlite.cli.turns import medians
from tirlite.kernels.gallery import CASES

# The most that one kernel, and that all of them together, may take for it.
BAR, BAR_IN_ALL = 1.25, 1.05
# Accesses that are neither proved nor decided outside of all loops, and what code and compile time may grow.
MOST_CHECKED, MOST_CODE = 0.05, 1.1
# The extents of arrays for kernels of which no more is known.
_EXTENT = 24
_COMPILED: Mapping[str, Callable[..., driver.Kernel]] = MappingProxyType(
    {"": driver.compile, ", loops as written": partial(driver.compile, schedule=None)}
)


def safety_figures(files: Sequence[Path] = (), *, quick: bool = False) -> Iterator[Figure]:
    """Ratios of medians of calls in turn, one a kernel and their mean; the growth of code and of the time to compile it
    where all is proved; accesses in the source, and as executed, of the gallery and of other files with kernels.

    `quick` takes the tests' small sizes.
    """
    for loops, compiled in _COMPILED.items():
        ratios: list[float] = []
        for case in CASES:
            kernel = case.kernel
            arguments = case.inputs(np.random.default_rng(0), *(case.sizes[-1] if quick else SIZES[kernel.name]))
            builds = [compiled(kernel, unchecked=unchecked) for unchecked in (True, False)]
            bare, safe = medians([partial(build, *arguments) for build in builds], 3 if quick else 101)
            ratios.append(safe / bare)
            is_same = len({build.asm for build in builds}) == 1
            note = f"{1e6 * bare:.0f} us, safe {1e6 * safe:.0f} us{', the same code' if is_same else ''}"
            yield Figure(kernel.name + loops, safe / bare, "x", None if quick else BAR, note)
        yield Figure("geometric mean" + loops, _mean(ratios), "x", None if quick else BAR_IN_ALL)
    yield from _code(1 if quick else 5)
    yield from _accesses({case.kernel: case.inputs(np.random.default_rng(0), *case.sizes[-1]) for case in CASES}, "")
    for file in files:
        kernels = kernels_in(file).values()
        yield from _accesses({each: plain_arguments(each.ir, _EXTENT) for each in kernels}, f", {file.name}")


def _mean(ratios: Sequence[float]) -> float:
    return exp(sum(map(log, ratios)) / len(ratios))


def _code(runs: int) -> Iterator[Figure]:
    """How much longer code is, and takes to make, for kernels in which all accesses are proved."""
    clean = [case.kernel for case in CASES if case.kernel.safety.count("proved") == len(case.kernel.safety)]
    code, ratios = Counter[bool](), []
    for kernel in clean:
        seconds: dict[bool, list[float]] = {True: [], False: []}
        for run in range(runs):
            for unchecked in (True, False):
                start = process_time()
                text = driver.compile(kernel, unchecked=unchecked).asm
                seconds[unchecked].append(process_time() - start)
                code[unchecked] += len(text) if run == 0 else 0
        ratios.append(min(seconds[False]) / min(seconds[True]))
    note = f"{len(clean)} kernels in which all is proved"
    yield Figure("assembly beside unchecked", code[False] / code[True], "x", MOST_CODE, note)
    yield Figure("time to compile beside unchecked", _mean(ratios), "x", None if runs == 1 else MOST_CODE, note)


def _accesses(calls: dict[driver.Kernel, Sequence[object]], where: str) -> Iterator[Figure]:
    """What share of accesses is checked inside of loops: by those in the source, and by those that a call makes."""
    in_source, in_calls = Counter[str](), Counter[str]()
    for kernel, arguments in calls.items():
        report = kernel.safety
        in_source.update(each.how if each.where != "at its loop" else "checked" for each in report)
        in_calls.update(executed(kernel, arguments))
    for name, counted in (("accesses checked in loops", in_source), ("executed accesses checked in loops", in_calls)):
        share = counted["checked"] / max(counted.total(), 1)
        told = ", ".join(f"{number} {how}" for how, number in sorted(counted.items()))
        yield Figure(name + where, share, "", MOST_CHECKED, told)
