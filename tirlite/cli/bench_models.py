"""ONNX models in, rows as those of the gallery's networks out, beside the time that onnxruntime takes for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from tirlite.cli.bench_graphs import GraphRow, graph_rows, milliseconds
from tirlite.cli.command_error import input_at_fault
from tirlite.cli.run import BadRunOption
from tirlite.graph import from_onnx
from tirlite.graph.gallery.network import Network

_THREADS = (1, 2)


def model_rows(paths: Sequence[Path], sizes: Mapping[str, int], runs: int) -> Iterator[GraphRow]:
    """A row for each model: its dims have the values in `sizes`, or 1; a call is timed `runs` times.

    Raises CommandError for what cannot be imported, and for a name in `sizes` that no model has.
    """
    with input_at_fault():
        networks = [(path, _network(path, sizes)) for path in paths]
    known = dict.fromkeys(name for _, network in networks for name in network.dims)
    for name, value in sizes.items():
        if name not in known:
            raise BadRunOption(f"--dim {name}={value}", f"the dims are {', '.join(known) or 'none'}").error()
    for path, network in networks:
        (row,) = graph_rows([network], runs)
        yield replace(row, name=path.name, onnxruntime=_onnxruntime(path, network, runs))


def _network(path: Path, sizes: Mapping[str, int]) -> Network:
    network = Network(from_onnx(path))
    return replace(network, bindings=({name: sizes.get(name, 1) for name in network.dims},))


def _onnxruntime(path: Path, network: Network, runs: int) -> Mapping[int, float]:
    """Milliseconds of a call by the number of threads; empty where onnxruntime is not installed."""
    try:
        runtime: Any = import_module("onnxruntime")
    except ImportError:
        return {}
    arrays = network.arguments(network.bindings[0])
    measured = {}
    for threads in _THREADS:
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        feeds = {each.name: array for each, array in zip(session.get_inputs(), arrays, strict=True)}
        measured[threads] = milliseconds(partial(session.run, None, feeds), runs)
    return measured
