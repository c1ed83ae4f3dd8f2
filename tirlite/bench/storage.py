"""Compares the bytes that tirlite plans for tables and models with those of TVM and ONNX Runtime."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from statistics import geometric_mean
from time import perf_counter

from tirlite.bench import onnxruntime_figures
from tirlite.bench.figures import as_json, machine, machine_text
from tirlite.bench.networks import Network
from tirlite.bench.plan_instances import instances_in
from tirlite.diag import TirliteError
from tirlite.graph import compile, from_onnx  # noqa: A004
from tirlite.graph.function import Function
from tirlite.graph.sample_arguments import sample_sizes
from tirlite.plan import Plan, check, read_csv, solve
from tirlite.record import record
from tirlite.show import table
from tirlite.solver import CompiledEngine

# The peers, and the packages that contain them.
PACKAGES = {"TVM": "apache-tvm", "ONNX Runtime": "onnxruntime"}


@record
class Row:
    """One problem: its lower bound, and the bytes of each planner; None for a peer that failed.

    `bound`: that of tirlite's problem; for a model, with fused operators.
    """

    name: str
    buffers: int
    bound: int
    total: int
    seconds: float
    peers: Mapping[str, int | None]

    def over(self, peer: str) -> float | None:
        """The peer's bytes relative to tirlite's."""
        found = self.peers.get(peer)
        return found / self.total if found and self.total else None


@record
class Failure:
    """A problem without a plan of constant size, and the error."""

    name: str
    error: str


def storage_rows(paths: Sequence[Path], dims: Mapping[str, int], limit: float) -> Iterator[Row | Failure]:
    """A row for each model, and for each table or model in a folder. Every plan has passed `check`.

    Raises CommandError for a folder without any.
    """
    for file, name in [pair for path in paths for pair in _files(path)]:
        try:
            yield _of_model(file, name, dims) if file.suffix == ".onnx" else _of_table(file, name, limit)
        except (TirliteError, OSError) as error:
            yield Failure(name, str(error))


def _files(path: Path) -> Iterator[tuple[Path, str]]:
    if not path.is_dir():
        yield path, path.stem
        return
    for each in instances_in(path):
        suffix = ".csv" if each.file is not None else ".onnx"
        yield path / f"{each.name}{suffix}", each.name


def _of_table(path: Path, name: str, limit: float) -> Row | Failure:
    problem = read_csv(path)
    start = perf_counter()
    plan = solve(problem, "auto", time_limit=limit, engine=CompiledEngine())
    seconds = perf_counter() - start
    return _row(name, plan, seconds, _by_tvm(path))


def _of_model(path: Path, name: str, dims: Mapping[str, int]) -> Row | Failure:
    function = from_onnx(path, dims=dims)
    start = perf_counter()
    plan = compile(function).plan
    seconds = perf_counter() - start
    peers = _by_tvm(path)
    if onnxruntime_figures.is_installed() and not plan.problem.dims:
        peers["ONNX Runtime"] = _by_onnxruntime(path, function)
    return _row(name, plan, seconds, peers)


def _row(name: str, plan: Plan, seconds: float, peers: Mapping[str, int | None]) -> Row | Failure:
    verdict = check(plan.problem, plan)
    if not verdict:
        return Failure(name, str(verdict))
    total, bound = plan.total, plan.lower_bound
    if not (isinstance(total, int) and isinstance(bound, int)):
        return Failure(name, f"it takes {total} bytes: tell numbers by --bind, or use `bench plans` or `bench graphs`")
    return Row(name, len(plan.problem.requests), bound, total, seconds, peers)


def _by_tvm(path: Path) -> dict[str, int | None]:
    if find_spec("tvm") is None:
        return {}
    command = [sys.executable, "-m", "tirlite.bench.probes.tvm_storage", str(path)]
    output = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    return {"TVM": int(output[-1]) if output and output[-1].isdecimal() else None}


def _by_onnxruntime(path: Path, function: Function) -> int | None:
    sizes = {dim.name: value for dim, value in sample_sizes(function, {}).items()}
    session = onnxruntime_figures.session_of(path, 1)
    feeds = onnxruntime_figures.feeds_of(session, Network(function).arguments(sizes), {})
    return onnxruntime_figures.planned_block(path, feeds)


def storage_text(results: Sequence[Row | Failure]) -> str:
    """The machine and the peers, a table, failures, and the mean ratios."""
    rows = [each for each in results if isinstance(each, Row)]
    names = [name for name in PACKAGES if any(name in row.peers for row in rows)]
    parts = [", ".join([machine_text(), *(f"{name} {number}" for name, number in _versions(names).items())])]
    heading = (
        "bytes",
        "buffers",
        "lower bound",
        "tirlite",
        "over",
        "seconds",
        *(x for name in names for x in (name, "x tirlite")),
    )
    if rows:
        parts.append(table(heading, [_cells(row, names) for row in rows]))
    parts += [f"{each.name}: {each.error}" for each in results if isinstance(each, Failure)]
    for name in names:
        ratios = [ratio for row in rows if (ratio := row.over(name))]
        if not ratios:
            continue
        mean, least, most = geometric_mean(ratios), min(ratios), max(ratios)
        parts.append(
            f"{name} takes {mean:.3f} times the bytes of tirlite in the geometric mean of {len(ratios)}, "
            f"from {least:.3f} to {most:.3f}"
        )
    return "\n\n".join(parts)


def _cells(row: Row, names: Sequence[str]) -> tuple[object, ...]:
    over = row.total / row.bound - 1 if row.bound else 0.0
    own = row.name, row.buffers, row.bound, row.total, f"{over:.2%}", f"{row.seconds:.2f}"
    return (*own, *(cell for name in names for cell in _of_peer(row, name)))


def _of_peer(row: Row, name: str) -> tuple[str, str]:
    total, ratio = row.peers.get(name), row.over(name)
    text = str(total) if total is not None else "failed" if name in row.peers else ""
    return text, "" if ratio is None else f"{ratio:.3f}"


def storage_json(results: Iterable[Row | Failure]) -> str:
    """One JSON object: the machine, the rows and the failures."""
    known = list(results)
    rows = [{**asdict(each), "peers": dict(each.peers)} for each in known if isinstance(each, Row)]
    failures = [asdict(each) for each in known if isinstance(each, Failure)]
    return as_json(machine=machine() | _versions(PACKAGES), rows=rows, failures=failures)


def _versions(names: Iterable[str]) -> dict[str, str]:
    found = {}
    for name in names:
        with suppress(PackageNotFoundError):
            found[name] = version(PACKAGES[name])
    return found
