"""Measures ONNX models: rows as those of the gallery's networks, beside what onnxruntime needs for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy.typing as npt

from tirlite.bench import onnxruntime_figures
from tirlite.bench.graphs import GraphRow, Peer, graph_rows
from tirlite.bench.networks import Network
from tirlite.cli.command_error import input_at_fault
from tirlite.cli.model_options import bad_option, by_identifier
from tirlite.cli.turns import medians
from tirlite.graph import compile, from_onnx  # noqa: A004
from tirlite.graph.sample_arguments import sample_sizes, sizes_by_name
from tirlite.record import record, replace
from tirlite.sizes import SizeLike
from tirlite.target import Target

Array: TypeAlias = npt.NDArray[Any]
Call: TypeAlias = Callable[[], object]
_THREADS = (1, 2)


@record
class ModelSizes:
    """What is told of models: values of dims to measure at, what dims are before a model is read, constants."""

    values: Mapping[str, Sequence[int]]
    dims: Mapping[str, SizeLike]
    constants: Mapping[str, Array]


def model_rows(paths: Sequence[Path], told: ModelSizes, runs: int) -> Iterator[GraphRow]:
    """Rows for each model, one for each choice of the values told; other dims are the least that can be.

    A call is timed `runs` times.

    Raises CommandError for what cannot be imported, and for a name among the values that no model has.
    """
    with input_at_fault():
        networks = [(path, _network(path, told)) for path in paths]
    known = dict.fromkeys(name for _, network in networks for name in sizes_by_name(network.function))
    for name, values in by_identifier(paths[0], told.values).items() if paths else told.values.items():
        if name not in known:
            option = f"--dim {name}={','.join(map(str, values))}"
            raise bad_option(option, f"the dims are {', '.join(known) or 'none'}")
    for path, network in networks:
        graphs = {count: compile(network.function, target=Target.host(workers=count)) for count in _THREADS}
        for row in graph_rows([network], runs):
            arrays = network.arguments(row.sizes)
            calls = {count: partial(graph, *arrays) for count, graph in graphs.items()}
            threads, peer = _beside(path, calls, arrays, told.constants, runs)
            yield replace(row, name=path.name, threads=threads, peer=peer)


def _beside(
    path: Path, calls: Mapping[int, Call], arrays: Sequence[Array], constants: Mapping[str, Array], runs: int
) -> tuple[dict[int, float], Peer | None]:
    """Milliseconds of calls by the number of threads, and those of onnxruntime, in turn, if it takes the model."""
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


def _network(path: Path, told: ModelSizes) -> Network:
    network = Network(from_onnx(path, dims=told.dims, constants=told.constants))
    values = by_identifier(path, told.values)
    names = [name for name in sizes_by_name(network.function) if name in values]
    bindings = []
    for choice in product(*(values[name] for name in names)):
        known = dict(zip(names, choice, strict=True))
        bindings.append({dim.name: value for dim, value in sample_sizes(network.function, known).items()})
    return replace(network, bindings=tuple(bindings))
