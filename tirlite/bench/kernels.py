"""Compares kernels with peers and with the machine's limits: milliseconds of each workload, called in turns.

`python -m tirlite.bench.kernels THREADS` measures in its own process, as libraries start their threads once; it prints
a line of JSON per workload.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from statistics import median

import numpy as np

from tirlite import driver
from tirlite.bench.figures import as_json, machine_text
from tirlite.bench.peers import PEERS, peers_for
from tirlite.bench.workloads import Array, Workload, workloads
from tirlite.cli.turns import turns
from tirlite.driver.profile import computing, moving, multiplying
from tirlite.ir import PrimFunc
from tirlite.record import record
from tirlite.show import table
from tirlite.target import Target

_THREADS = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"),
    *("HL_NUM_THREADS", "TVM_NUM_THREADS"),
)
# OpenBLAS's threads spin for so many seconds after a call, and would slow down the next library.
_REST = 0.03
# Peers that return a new array reuse the memory of the previous one instead of fresh pages.
_SETTINGS = {
    "OPENBLAS_THREAD_TIMEOUT": "4",
    "TVM_BIND_THREADS": "0",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
}
_PATIENCE = 5.0  # seconds per workload and peer
_RUNS = 25


@record
class Row:
    """The least and the median milliseconds of a workload on `threads`, by peer; None for a wrong result.

    `limit`: the largest of the least times for as many bytes, multiply-adds and elementary functions.
    """

    workload: str
    threads: int
    least: dict[str, float | None]
    median: dict[str, float]
    limit: float
    limited_by: str

    @property
    def best_peer(self) -> str | None:
        peers = {name: each for name, each in self.least.items() if name != "tirlite" and each is not None}
        return min(peers, key=lambda name: peers[name], default=None)

    @property
    def ratio(self) -> float | None:
        """tirlite's least time relative to the best peer's."""
        ours, best = self.least["tirlite"], self.best_peer and self.least[self.best_peer]
        return ours / best if ours and best else None


def kernel_rows(threads: Sequence[int], options: Sequence[str]) -> Iterator[Row]:
    """The rows of all workloads, measured in a new process for each number of threads."""
    for count in threads:
        environment = {**os.environ, **dict.fromkeys(_THREADS, str(count)), **_SETTINGS}
        command = [sys.executable, "-m", "tirlite.bench.kernels", str(count), *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            assert process.stdout is not None
            for line in process.stdout:
                yield Row(**json.loads(line))
        if process.returncode:
            raise SystemExit(process.returncode)


def measured(workload: Workload, key: str, threads: int, peers: tuple[str, ...], runs: int) -> Row:
    """One row, in this process."""
    target = Target.host(workers=threads)
    kernel = driver.compile(workload.kernel, target=target)
    output = np.zeros_like(workload.output)
    called: dict[str, tuple[Callable[[], object], Array]]
    called = {"tirlite": (partial(kernel, *workload.inputs, output), output), **peers_for(key, workload, peers)}
    is_right = {}
    for name, (call, array) in called.items():
        call()
        is_right[name] = bool((abs(array.astype(float) - workload.exact) <= workload.bound).all())
    limits = limits_of(workload, target)
    calls = {name: call for name, (call, _) in called.items()} | limits
    timed = turns([*calls.values()], runs, patience=_PATIENCE, rest=_REST if runs > 1 else 0.0)
    seconds = dict(zip(calls, timed, strict=True))
    least = {name: 1e3 * min(each) for name, each in seconds.items()}
    limited_by = max(limits, key=lambda name: least[name])
    return Row(
        workload.name,
        threads,
        {name: least[name] if is_right[name] else None for name in called},
        {name: 1e3 * median(seconds[name]) for name in called},
        least[limited_by],
        limited_by,
    )


def limits_of(workload: Workload, target: Target) -> dict[str, Callable[[], object]]:
    """Calls that move as many bytes, do as many multiply-adds, and compute as many elementary functions."""
    found = {"bytes": [moving(workload.bytes_read, workload.output.nbytes)]}
    if workload.dtype and workload.multiply_adds:
        found["multiply-adds"] = [multiplying(workload.multiply_adds, workload.dtype)]
    if workload.functions:
        found["functions"] = [computing(count, name, "f32") for name, count in workload.functions.items()]
    return {name: partial(_all, [_call(*each, target) for each in works]) for name, works in found.items()}


def _call(func: PrimFunc, given: tuple[object, ...], target: Target) -> Callable[[], object]:
    return partial(driver.compile(func, target=target), *given)


def _all(calls: Sequence[Callable[[], object]]) -> None:
    for call in calls:
        call()


def kernels_text(rows: Sequence[Row]) -> str:
    """The machine, a table, and the mean ratios."""
    names = [name for name in ("tirlite", *PEERS) if any(name in row.least for row in rows)]
    cells = [
        (
            row.workload,
            str(row.threads),
            *(_milliseconds(row, name) for name in names),
            f"{row.limit:.3g} {row.limited_by}",
            "" if row.ratio is None else f"{row.ratio:.2f} {row.best_peer}",
        )
        for row in rows
    ]
    means = [
        f"{threads} threads: {float(np.exp(np.mean(np.log(ratios)))):.2f} times the best peer's time in the mean"
        for threads in sorted({row.threads for row in rows})
        if (ratios := [row.ratio for row in rows if row.threads == threads and row.ratio])
    ]
    heads = ("ms: least, median", "threads", *names, "limit", "ratio")
    return "\n\n".join([machine_text(), table(heads, cells), "\n".join(means)])


def _milliseconds(row: Row, name: str) -> str:
    if name not in row.least:
        return ""
    least = row.least[name]
    return "WRONG" if least is None else f"{least:.3g}, {row.median[name]:.3g}"


def kernels_json(rows: Sequence[Row]) -> str:
    """One JSON object: the machine, and the list of rows."""
    listed = [{**asdict(row), "best_peer": row.best_peer, "ratio": row.ratio} for row in rows]
    return as_json(rows=listed)


def main(threads: str, only: str = "", peers: str = "", quick: str = "") -> None:
    """Prints a line for each workload whose name contains `only`."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(threads)])
    chosen = tuple(filter(None, peers.split(",")))
    for key, make in workloads(quick=bool(quick)).items():
        if only in key.replace("_", " "):
            row = measured(make(), key, int(threads), chosen, 1 if quick else _RUNS)
            print(json.dumps(asdict(row)), flush=True)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):  # the parent process reports it
        main(*sys.argv[1:])
