"""Measures networks: bytes under each planner, and times to compile and to run.

ONNX models get the same rows, and the figures of onnxruntime beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, field
from functools import partial
from itertools import product
from pathlib import Path
from statistics import geometric_mean
from time import perf_counter
from typing import Any, TypeAlias

import numpy.typing as npt

from tirlite.bench import onnxruntime_figures
from tirlite.bench.figures import as_json, machine_text
from tirlite.bench.networks import Network
from tirlite.cli.command_error import input_at_fault
from tirlite.cli.options import bad_option, by_identifier
from tirlite.cli.turns import medians
from tirlite.graph import Function, compile, from_onnx, memory_problem  # noqa: A004
from tirlite.graph.sample_arguments import sample_sizes, sizes_by_name
from tirlite.plan import Plan
from tirlite.plan.bound import open_bound
from tirlite.plan.problem import Problem
from tirlite.record import record, replace
from tirlite.show import table
from tirlite.sizes import Size, SizeLike, evaluate
from tirlite.sizes.evaluate import as_number
from tirlite.target import Target

# The ways to plan storage: slots of a loop nest, tokens of a graph, a region of an explicit program, groups of a static
# runtime, offsets of a whole program, and the last anew for each shape.
PLANNERS = ("share", "graph", "coalesce", "group", "auto", "per_shape")
COMPILE_BAR = 30.0
SHORT_MS = 0.05


@record
class Peer:
    """onnxruntime's milliseconds per call by number of threads, and the bytes of its planned block if known.
    `ratios`: tirlite's milliseconds relative to these. `noise`: a second measurement of onnxruntime relative to the
    first.
    """

    milliseconds: Mapping[int, float]
    ratios: Mapping[int, float]
    noise: Mapping[int, float]
    block: int | None


@record
class GraphRow:
    """One network at one set of sizes. Bytes are those of tensors between operators, without parameters and results.
    `raw`, `views`: lower bounds for the graph as written, the peak of live bytes, where a reshape makes a new tensor or
    none. `compiled`: the same for the compiled graph, with fused operators, in-place pairs, and the kernels'
    temporaries. `planned`: the bytes under each planner. `ordered`: the bytes under `auto` with operators ordered for
    least memory. `threads`: for models, the milliseconds by number of workers. `peer`: onnxruntime's figures, if
    measured. For a network in several parts the bytes are those of the largest, and those as written are unknown.
    """

    name: str
    sizes: Mapping[str, int]
    intermediates: int | None
    naive: int | None
    raw: int | None
    views: int | None
    compiled: int
    planned: Mapping[str, int]
    ordered: int
    compile_seconds: float
    milliseconds: float
    threads: Mapping[int, float] = field(default_factory=dict)
    peer: Peer | None = None
    parts: int = 1

    @property
    def gap(self) -> float:
        """The excess of the best plan over the lower bound `compiled`, relative to it."""
        best = min(self.planned["auto"], self.planned["per_shape"])
        return best / self.compiled - 1 if self.compiled else 0.0

    @property
    def met(self) -> bool:
        return self.gap <= 0 and self.compile_seconds <= COMPILE_BAR


def graph_rows(networks: Iterable[Network], runs: int) -> Iterator[GraphRow]:
    """A row for each network and each of its sets of sizes; calls are timed `runs` times."""
    for network in networks:
        yield from _rows(network, runs)


def _rows(network: Network, runs: int) -> Iterator[GraphRow]:
    function = network.function
    start = perf_counter()
    compiled = compile(function)
    compiled(*network.arguments(network.bindings[0]))
    seconds = perf_counter() - start
    graphs = {name: compiled if name == "auto" else compile(function, strategy=name) for name in PLANNERS}
    ordered = compile(function, order="memory")
    written = _written(function) if compiled.parts[0] is compiled else None
    for sizes in network.bindings:
        arguments = network.arguments(sizes)
        plans = {name: each.plans(*arguments) for name, each in graphs.items()}
        none = (None, None, None, None)
        count, naive, raw, views = none if written is None else written.at(network, sizes)
        (call,) = medians([partial(compiled, *arguments)], runs)
        yield GraphRow(
            network.name,
            sizes,
            count,
            naive,
            raw,
            views,
            min(max(as_number(plan.open_bound) for plan in plans[name]) for name in ("auto", "per_shape")),
            {name: _largest(each) for name, each in plans.items()},
            _largest(ordered.plans(*arguments)),
            seconds,
            1e3 * call,
            parts=len(plans["auto"]),
        )


def _largest(plans: Iterable[Plan]) -> int:
    return max(as_number(plan.total) for plan in plans)


@record
class _Written:
    """Of a graph as written: the number of its tensors, the sum of their bytes, and both lower bounds."""

    count: int
    naive: Size
    raw: Size
    views: Size

    def at(self, network: Network, sizes: Mapping[str, int]) -> tuple[int, int, int, int]:
        """The same at these sizes."""
        binding = {dim: sizes[name] for name, dim in network.dims.items()}
        naive, raw, views = (evaluate(each, binding) for each in (self.naive, self.raw, self.views))
        return self.count, naive, raw, views


def _written(function: Function) -> _Written:
    plain = memory_problem(function, inner=True)
    views = memory_problem(function, views=True, inner=True)
    return _Written(len(plain.requests), _sum(plain), open_bound(plain), open_bound(views))


def _sum(problem: Problem) -> Size:
    total: Size = 0
    for request in problem.requests:
        total = total + request.size
    return total


def graphs_json(rows: Sequence[GraphRow]) -> str:
    """One JSON object: the machine, and the list of networks."""
    listed = [{**asdict(row), "gap": row.gap, "met": row.met} for row in rows]
    return as_json(graphs=listed)


def graphs_text(rows: Sequence[GraphRow]) -> str:
    """The machine, a table of all rows, and for models one beside onnxruntime."""
    heading = ("network", "sizes", "tensors", "naive", "bound: raw", "views", "compiled", *PLANNERS, "ordered", "gap")
    parts = [machine_text(), table((*heading, "compile s", "ms"), [_cells(row) for row in rows])]
    models = [row for row in rows if row.threads]
    if models:
        parts += [_beside(models), _means(models), _over_bound(models)]
    return "\n\n".join(parts)


def _sizes(row: GraphRow) -> str:
    parts = [f"largest of {row.parts} parts"] if row.parts > 1 else []
    return ", ".join([*(f"{name} {value}" for name, value in row.sizes.items()), *parts])


def _cells(row: GraphRow) -> tuple[str, ...]:
    written = (row.intermediates, row.naive, row.raw, row.views)
    numbers = ("" if each is None else each for each in (*written, row.compiled, *row.planned.values(), row.ordered))
    return (
        *(row.name, _sizes(row), *map(str, numbers)),
        *(f"{row.gap:.2%}", f"{row.compile_seconds:.2f}", f"{row.milliseconds:.2f}"),
    )


def _beside(models: Sequence[GraphRow]) -> str:
    """A table of milliseconds by number of threads, and of bytes between operators, here and in onnxruntime."""
    threads = list(models[0].threads)
    named = [f"{count} thread{'s' if count > 1 else ''}" for count in threads]
    heading = ["model", "sizes", *(f"ms, {each}" for each in named), "bytes"]
    has_peer = any(row.peer is not None for row in models)
    if has_peer:
        heading += [f"{what}, {each}" for what in ("onnxruntime ms", "ratio", "noise") for each in named]
        heading.append("onnxruntime bytes")
    cells = []
    for row in models:
        own = [row.name, _sizes(row), *(f"{row.threads[count]:.2f}" for count in threads), str(row.planned["auto"])]
        if row.peer is not None:
            own += [f"{row.peer.milliseconds[count]:.2f}" for count in threads]
            own += [f"{found[count]:.2f}" for found in (row.peer.ratios, row.peer.noise) for count in threads]
            own.append("" if row.peer.block is None else str(row.peer.block))
        cells.append((*own, *[""] * (len(heading) - len(own))))
    return table(tuple(heading), cells)


def _means(models: Sequence[GraphRow]) -> str:
    """The geometric means of the ratios; very short calls separately, as their time is mostly call overhead."""
    lines = []
    for count in models[0].threads:
        for what, is_short in (("", False), (f" that take less than {SHORT_MS} ms", True)):
            peers = [row.peer for row in models if row.peer is not None]
            ratios = [each.ratios[count] for each in peers if (each.milliseconds[count] < SHORT_MS) == is_short]
            if ratios:
                figures = f"{geometric_mean(ratios):.2f} x onnxruntime's time, {min(ratios):.2f} to {max(ratios):.2f}"
                lines.append(f"{count} thread{'s' if count > 1 else ''}: {figures}, of {len(ratios)} rows{what}")
    return "\n".join(lines) or "without onnxruntime"


def _over_bound(models: Sequence[GraphRow]) -> str:
    """How much the plans exceed the bound of the measured sizes, for one plan and for a plan per shape."""
    lines = []
    for name in ("auto", "per_shape"):
        ratios = [row.planned[name] / row.compiled for row in models if row.compiled]
        if ratios:
            figures = f"{sum(ratios) / len(ratios):.4f} x the bound in the mean, {max(ratios):.4f} x at most"
            lines.append(f"{name}: {figures}, of {len(ratios)} rows")
    return "\n".join(lines)


Array: TypeAlias = npt.NDArray[Any]
Call: TypeAlias = Callable[[], object]
_THREADS = (1, 2)


@record
class ModelSizes:
    """Options for models: dim values to measure at, dims fixed before reading, and constants."""

    values: Mapping[str, Sequence[int]]
    dims: Mapping[str, SizeLike]
    constants: Mapping[str, Array]


def model_rows(paths: Sequence[Path], sizes: ModelSizes, runs: int) -> Iterator[GraphRow]:
    """Rows for each model, one for each choice of the given values; other dims take the least possible value.

    Raises CommandError for a model that cannot be imported, and for a name that no model has.
    """
    with input_at_fault():
        networks = [(path, _network(path, sizes)) for path in paths]
    known = dict.fromkeys(name for _, network in networks for name in sizes_by_name(network.function))
    for name, values in by_identifier(paths[0], sizes.values).items() if paths else sizes.values.items():
        if name not in known:
            option = f"--dim {name}={','.join(map(str, values))}"
            raise bad_option(option, f"the dims are {', '.join(known) or 'none'}")
    for path, network in networks:
        graphs = {count: compile(network.function, target=Target.host(workers=count)) for count in _THREADS}
        for row in graph_rows([network], runs):
            arrays = network.arguments(row.sizes)
            calls = {count: partial(graph, *arrays) for count, graph in graphs.items()}
            threads, peer = _with_peer(path, calls, arrays, sizes.constants, runs)
            yield replace(row, name=path.name, threads=threads, peer=peer)


def _with_peer(
    path: Path, calls: Mapping[int, Call], arrays: Sequence[Array], constants: Mapping[str, Array], runs: int
) -> tuple[dict[int, float], Peer | None]:
    """Milliseconds by number of threads, and onnxruntime's measured in turns, if it runs the model."""
    if not onnxruntime_figures.takes(path, arrays, constants):
        return {count: 1e3 * medians([call], runs)[0] for count, call in calls.items()}, None
    own, others, again = dict[int, float](), dict[int, float](), dict[int, float]()
    feeds: Mapping[str, Array] = {}
    for count, call in calls.items():
        session = onnxruntime_figures.session_of(path, count)
        feeds = onnxruntime_figures.feeds_of(session, arrays, constants)
        other = partial(session.run, None, feeds)
        found = medians([call, other, other], runs, is_settled=True)
        own[count], others[count], again[count] = (1e3 * each for each in found)
    ratios, noise = ({count: ms[count] / others[count] for count in calls} for ms in (own, again))
    return own, Peer(others, ratios, noise, onnxruntime_figures.planned_block(path, feeds))


def _network(path: Path, sizes: ModelSizes) -> Network:
    network = Network(from_onnx(path, dims=sizes.dims, constants=sizes.constants))
    values = by_identifier(path, sizes.values)
    names = [name for name in sizes_by_name(network.function) if name in values]
    bindings = []
    for choice in product(*(values[name] for name in names)):
        known = dict(zip(names, choice, strict=True))
        bindings.append({dim.name: value for dim, value in sample_sizes(network.function, known).items()})
    return replace(network, bindings=tuple(bindings))
