"""Measures the speed of the compiler."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from math import log
from pathlib import Path
from statistics import linear_regression, median
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import numpy as np

import tirlite
from tirlite import driver
from tirlite.bench.figures import Figure
from tirlite.bench.programs import SHAPES
from tirlite.cli.turns import medians
from tirlite.ir import Builder, PrimFunc, Var, f32, i64
from tirlite.rewrite import default_pipeline, run_pipeline
from tirlite.sizes import Dim

# Runs Python with these arguments in a new process, and returns its output.
Fresh: TypeAlias = Callable[..., str]

# Bars in milliseconds, microseconds and seconds; sizes in temporaries, terms, statements and loops.
_IMPORT_BAR, _FIRST_RESULT_BAR = 60, 30
_CALL_BAR = 10
_CACHED_BAR = 5
_NETWORK_BAR, _CACHED_NETWORK_BAR = 2_500, 300
_PASS_BARS = {"chain": 0.6, "all live": 2, "symbolic": 5}
_GROWTH_BAR = 1.2
_EXTREMES = {
    "a sum of {} terms": ("sum", 10_000, None),
    "{} statements in a row": ("row", 10_000, None),
    "{} nested loops": ("nest", 2_000, None),
    "{} temporaries": ("temporaries", 1_000, 5),
}


def compiler_figures(*, quick: bool = False) -> Iterator[Figure]:
    """Yields all figures as they are measured. `quick` takes small sizes and runs everything once."""
    runs, scale = (1, 50) if quick else (7, 1)
    with TemporaryDirectory() as compiled:
        # Use compiled modules, like an installed package, whatever this process's settings are.
        fresh = partial(_fresh, {} if quick else {"PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""})
        yield from _imports(fresh, runs)
        yield from _first_result(fresh, runs)
        yield from _from_cache(fresh, runs)
        yield from _network(fresh, runs, 0 if quick else 6)
        yield from _calls(runs)
        yield from _passes([size // scale for size in (1_000, 4_000, 16_000, 20_000)], 1 if quick else 3)
        yield from _extremes(fresh, scale)


def _imports(fresh: Fresh, runs: int) -> Iterator[Figure]:
    timed = "import numpy; from time import perf_counter as t; s = t(); import tirlite; print(t() - s)"
    seconds: dict[str, list[float]] = {"import tirlite": [], "import and first kernel made": []}
    imports, makes = seconds.values()
    for found in _found(fresh, runs, "tirlite.bench.probes.first_call"):
        imports.append(float(fresh("-c", timed)))
        makes.append(found["made"])
    for name, each in seconds.items():
        yield Figure(f"{name}, beyond NumPy", 1e3 * median(each), "ms", _IMPORT_BAR)


def _first_result(fresh: Fresh, runs: int) -> Iterator[Figure]:
    found = list(_found(fresh, runs, "tirlite.bench.probes.vector_add"))
    imports, kernels, stages = (
        {name: 1e3 * median(each[part][name] for each in found) for name in found[0][part]}
        for part in ("imports", "kernels", "stages")
    )
    listed = ", ".join(f"{name} {milliseconds:.0f}" for name, milliseconds in imports.items())
    note = f"imported before that, in ms: {listed}"
    name = "vector add with symbolic n, source to first result"
    yield Figure(name, kernels["first"], "ms", _FIRST_RESULT_BAR, note)
    yield from (Figure(f"  {name}", each, "ms") for name, each in stages.items() if each >= 0.1)
    total = median(each["imports"]["tirlite"] + each["kernels"]["first"] for each in found)
    yield Figure("the same with the import of tirlite", 1e3 * total, "ms")
    yield Figure("the same of a second kernel, with everything loaded", kernels["second"], "ms", _FIRST_RESULT_BAR)


def _from_cache(fresh: Fresh, runs: int) -> Iterator[Figure]:
    """A process that finds the kernel in the cache on disk."""
    with TemporaryDirectory() as folder:
        settings = {"TIRLITE_CACHE": f"{folder}/cache"}
        fresh("-m", "tirlite.bench.probes.first_call", more=settings)
        found = list(_found(fresh, runs, "tirlite.bench.probes.first_call", more=settings))
    first, whole = (1e3 * median(each[part] for each in found) for part in ("call", "whole"))
    loaded = ", ".join(found[0]["loaded"])
    yield Figure("first call of a kernel that the cache on disk has", first, "ms", _CACHED_BAR, loaded)
    yield Figure("the same with import and decoration, beyond NumPy", whole, "ms", _IMPORT_BAR)


def _network(fresh: Fresh, runs: int, blocks: int) -> Iterator[Figure]:
    """Processes that read a network from its file: one compiles it, the others find it in the cache."""
    if find_spec("onnx") is None:
        return
    name = "ResNet-50" if blocks else "the first layer of ResNet-50"
    with TemporaryDirectory() as folder:
        settings, file = {"TIRLITE_CACHE": f"{folder}/cache"}, f"{folder}/resnet50.onnx"
        fresh("-m", "tirlite.bench.probes.network", "write", file, str(blocks))
        run = partial(fresh, "-m", "tirlite.bench.probes.network", "run", file)
        if runs > 1:
            run(more={"TIRLITE_CACHE": "0"})
        for title, bar, more, times in (
            ("without the cache on disk", _NETWORK_BAR, {"TIRLITE_CACHE": "0"}, 1),
            ("kept on disk now", None, settings, 1),
            ("that the cache on disk has", _CACHED_NETWORK_BAR, settings, runs),
        ):
            found = [json.loads(run(more=more)) for _ in range(times)]
            first, cpu, second = (1e3 * median(each[part] for each in found) for part in ("first", "cpu", "second"))
            note = f"{cpu:.0f} ms of the processor; the second result takes {second:.0f} ms"
            yield Figure(f"{name} {title}, file to first result, beyond NumPy", first, "ms", bar, note)


def _calls(runs: int) -> Iterator[Figure]:
    """Calls of a new kernel, and of one that has been called often and has a quick call."""
    kernel = driver.compile(_vector_add())
    arrays = [np.ones(16, np.float32) for _ in range(3)]
    kernel(*arrays)

    def batch(calls: int) -> None:
        for _ in range(calls):
            kernel(*arrays)

    few, many = 20, 2_000
    (new,) = medians([partial(batch, few)], runs)
    batch(many)
    (often,) = medians([partial(batch, many)], runs)
    yield Figure("call with three arrays, all checks, of a new kernel", 1e6 * new / few, "us", _CALL_BAR)
    yield Figure("call with three arrays, all checks, after some hundreds", 1e6 * often / many, "us", _CALL_BAR)


def _passes(sizes: Sequence[int], runs: int) -> Iterator[Figure]:
    """The bars are for the last of `sizes`; growth is measured over the others."""
    for shape, make in SHAPES.items():
        seconds = []
        for size in sizes:
            seconds += medians([partial(run_pipeline, make(size), default_pipeline("share"))], runs)
        for size, each in zip(sizes[:-1], seconds, strict=False):
            yield Figure(f"passes, {shape}, {size:,} temporaries", each, "s")
        yield Figure(f"passes, {shape}, {sizes[-1]:,} temporaries", seconds[-1], "s", _PASS_BARS[shape])
        growth = _exponent(sizes[:-1], seconds[:-1])
        yield Figure(f"passes, {shape}, exponent of growth", growth, "", _GROWTH_BAR)


def _extremes(fresh: Fresh, scale: int) -> Iterator[Figure]:
    for name, (program, full_size, bar) in _EXTREMES.items():
        size = full_size // scale
        title = f"{name.format(f'{size:,}')}, IR to result"
        try:
            found = json.loads(fresh("-m", "tirlite.bench.programs", program, str(size)))
        except subprocess.CalledProcessError as error:
            yield Figure(title, None, "s", bar, f"the process ended with code {error.returncode}")
            continue
        refused = found.get("refused")
        yield Figure(title, found["seconds"], "s", bar, f"refused: {refused}" if refused else found["note"])


def _vector_add() -> PrimFunc:
    n = Var("n", i64, Dim("n"))
    b = Builder("add")
    x, y, z = (b.param(name, f32[n]) for name in "xyz")
    with b.for_("i", 0, n) as i:
        b.store(z, i, x[i] + y[i])
    return b.build()


def _found(fresh: Fresh, runs: int, probe: str, more: Mapping[str, str] | None = None) -> Iterator[dict[str, Any]]:
    """The results of `runs` processes; if there are several, an additional first one warms the file cache."""
    if runs > 1:
        fresh("-m", probe, more=more)
    for _ in range(runs):
        yield json.loads(fresh("-m", probe, more=more))


def _fresh(settings: Mapping[str, str], *arguments: str, more: Mapping[str, str] | None = None) -> str:
    """The output of a new Python process that imports this tirlite, with these environment variables."""
    home = str(Path(tirlite.__file__).parent.parent)
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **settings, **(more or {})}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def _exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """The slope of the regression line in a log-log plot."""
    return linear_regression(list(map(log, sizes)), list(map(log, seconds))).slope
