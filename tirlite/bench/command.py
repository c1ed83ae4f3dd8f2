"""`tirlite bench WHAT`: measured figures, each with its bar."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

from tirlite.cli.options import add_known, add_several, seconds, whole
from tirlite.cli.progress import printed
from tirlite.show.environment import without_cache

# The benches of single figures: help, description, what a quick run reduces, and MODULE:FUNCTION.
_FIGURES = {
    "compile": (
        "the speed of the compiler: import, first result, calls, passes, extreme programs",
        "Measures the speed of the compiler, in a minute or so. Leave the machine idle meanwhile.",
        "small programs and few runs",
        "compile:compiler_figures",
    ),
    "debug": (
        "the price of checked code: how much slower each kernel of the gallery is with debug=True",
        "Calls each kernel of the gallery with and without checks in turn, and prints the ratio.",
        "small arrays and few runs",
        "gallery:debug_figures",
    ),
    "safety": (
        "the price of safety: how much slower each kernel of the gallery is than with unchecked=True",
        "Calls each kernel of the gallery as it is and unchecked in turn; counts accesses, and code.",
        "small arrays and few runs, without bars on time",
        "gallery:safety_figures",
    ),
    "compact": (
        '`schedule="compact"`: bytes and times of the gallery with loops joined and temporaries shrunk, and without',
        'Calls kernels scheduled by the usual rules, and by `schedule="compact"`, in turn: the ratios.',
        "small arrays and few runs",
        "gallery:compact_figures",
    ),
    "math": (
        "the elementary functions: the worst error against mpmath, and the time of an element beside NumPy",
        "Tries each elementary function on a sample with corners, and times it and NumPy in turn.",
        "small samples and few runs",
        "math:math_figures",
    ),
    "parallel": (
        "parallel loops: each kernel of the gallery on one worker and on several, and the cost of a fork",
        "Calls each kernel with parallel loops on one worker and on several in turn, and prints the ratio.",
        "small arrays and few runs",
        "gallery:parallel_figures",
    ),
}


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "bench",
        help="measure tirlite on this machine",
        description="Measures tirlite on this machine, and prints each figure with its bar.",
    )
    benches = parser.add_subparsers(title="what is measured", metavar="WHAT", required=True)
    for name, (help_text, description, quick, figures) in _FIGURES.items():
        bench = benches.add_parser(name, help=help_text, description=description)
        if name == "safety":
            bench.add_argument("files", nargs="*", type=Path, metavar="FILE.py", help="count accesses of its kernels")
        if name == "parallel":
            bench.add_argument("--workers", metavar="N", type=whole(1, 1024), default=2, help="how many (%(default)d)")
        _finish(bench, partial(_run_figures, figures), quick)
    _add_kernels(benches)
    _add_graphs(benches)
    _add_plans(benches)
    _add_storage(benches)


def _add_kernels(benches: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    kernels = benches.add_parser(
        "kernels",
        help="definitions beside NumPy, Numba, SciPy and OpenCV, where installed, and beside the limits of the machine",
        description="Runs each workload in tirlite and in its peers, in turn, and checks the results.",
    )
    kernels.add_argument(
        "--threads", metavar="T,T", type=_counts, default="1,2", help="numbers of threads (%(default)s)"
    )
    kernels.add_argument("--peers", metavar="NAME,NAME", type=_peers, default="", help="compare with these peers only")
    kernels.add_argument(
        "--only", metavar="NAME", type=_workload, default="", help="measure only workloads with this in their name"
    )
    _finish(kernels, run_kernels, "small arrays and one run")


def _counts(text: str) -> list[int]:
    """Numbers of threads, separated by commas."""
    return [whole(1, 1024)(each) for each in text.split(",")]


def _peers(text: str) -> str:
    """Names of installed peers, separated by commas."""
    from tirlite.bench.peers import PEERS, is_installed

    for name in filter(None, text.split(",")):
        if name not in PEERS:
            raise argparse.ArgumentTypeError(f"`{name}` is no peer: take some of {', '.join(PEERS)}")
        if not is_installed(name):
            raise argparse.ArgumentTypeError(f"`{name}` is not installed")
    return text


def _workload(text: str) -> str:
    """Part of a workload's name, as printed or as typed."""
    from tirlite.bench.workloads import workloads

    names = {name: None for quick in (False, True) for name in workloads(quick=quick)}
    part = text.casefold().replace("_", " ")
    if not any(part in name.replace("_", " ") for name in names):
        raise argparse.ArgumentTypeError(f"no workload has `{text}` in its name: they are {', '.join(names)}")
    return part


def _add_graphs(benches: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    graphs = benches.add_parser(
        "graphs",
        help="networks: bytes under each planner beside the lower bounds, seconds to compile, milliseconds to run",
        description="Compiles the networks of the gallery, or models, plans their storage in all ways, and runs them.",
    )
    models = "*.onnx, beside onnxruntime; the gallery by default"
    graphs.add_argument("models", metavar="MODEL", type=Path, nargs="*", help=models)
    add_several(graphs, "--dim", "NAME=N,M", "values of a dim to measure at; the least one by default")
    add_known(graphs)
    _finish(graphs, run_graphs, "small networks and few runs")


def _add_plans(benches: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    plans = benches.add_parser(
        "plans",
        help="the planner: bytes over the lower bound, proofs, seconds, memory, on generated problems or a folder's",
        description="Plans problems and prints the bytes reached. A search that finds no proof runs until the limit.",
    )
    plans.add_argument("--instances", metavar="DIR", type=Path, help="a folder of CSV files and models")
    plans.add_argument("--strategy", metavar="S", help="the planning strategy; exact by default, auto for traces")
    plans.add_argument("--time-limit", metavar="S", type=seconds, default=10, help="seconds per problem (%(default)g)")
    plans.add_argument("--threads", metavar="T", type=whole(1, 1024), default=1, help="search threads (%(default)d)")
    _finish(plans, run_plans, "small problems")


def _add_storage(benches: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    storage = benches.add_parser(
        "storage",
        help="bytes of tables and models beside those of TVM and ONNX Runtime, where installed",
        description="Plans each table and model, checks the plan, and runs the planners of peers on the same.",
    )
    storage.add_argument("paths", metavar="PATH", type=Path, nargs="+", help="*.csv, *.onnx, or a folder of them")
    add_several(storage, "--bind", "NAME=N", "a number for a dim of models")
    storage.add_argument("--time-limit", metavar="S", type=seconds, default=10, help="seconds per table (%(default)g)")
    _finish(storage, run_storage, "one second per table")


def _finish(bench: argparse.ArgumentParser, run: Callable[[argparse.Namespace], int], quick: str) -> None:
    """Adds the options of all benches; `quick` says what a quick run reduces."""
    bench.add_argument("--json", action="store_true", help="print JSON")
    bench.add_argument("--quick", action="store_true", help=f"{quick}, to see that it works")

    def run_without_cache(arguments: argparse.Namespace) -> int:
        without_cache()
        return run(arguments)

    bench.set_defaults(run=run_without_cache)


def run_kernels(arguments: argparse.Namespace) -> int:
    from tirlite.bench.kernels import kernel_rows, kernels_json, kernels_text

    options = (arguments.only, arguments.peers, "quick" if arguments.quick else "")
    rows = kernel_rows(arguments.threads, options)
    return printed(rows, lambda row: row.workload, kernels_json if arguments.json else kernels_text)


def run_graphs(arguments: argparse.Namespace) -> int:
    from tirlite.bench.graphs import ModelSizes, graph_rows, graphs_json, graphs_text, model_rows
    from tirlite.bench.networks import LARGE, SMALL
    from tirlite.cli.options import dims_of_model, parsed_constants, parsed_dims, parsed_values

    networks = SMALL if arguments.quick else {**SMALL, **LARGE}
    runs = 1 if arguments.quick else 11
    constants = parsed_constants(arguments.constant)
    dims = dims_of_model(arguments.models, parsed_dims(arguments.bind, "--bind"), arguments.facts)
    sizes = ModelSizes(parsed_values(arguments.dim), dims, constants)
    if arguments.models or sizes.values:  # `model_rows` refuses a dim without a model
        measured = model_rows(arguments.models, sizes, runs)
    else:
        measured = graph_rows((make() for make in networks.values()), runs)
    return printed(measured, lambda row: row.name, graphs_json if arguments.json else graphs_text)


def _run_figures(figures: str, arguments: argparse.Namespace) -> int:
    """Prints the figures of MODULE:FUNCTION once all are measured, or at Ctrl-C."""
    from tirlite.bench.figures import figures_json, figures_text

    module, _, function = figures.partition(":")
    own = [value for name, value in vars(arguments).items() if name in ("files", "workers")]
    measured = getattr(import_module(f"tirlite.bench.{module}"), function)(*own, quick=arguments.quick)
    return printed(measured, lambda figure: figure.name.strip(), figures_json if arguments.json else figures_text)


def run_plans(arguments: argparse.Namespace) -> int:
    from tirlite.bench.plan_figures import plans_json, plans_text
    from tirlite.bench.plan_instances import generated, instances_in
    from tirlite.bench.plans import How, measured
    from tirlite.solver import CompiledEngine

    folder: Path | None = arguments.instances
    instances = list(generated(quick=arguments.quick)) if folder is None else instances_in(folder)
    how = How(CompiledEngine(), arguments.time_limit, arguments.threads)
    results = measured(instances, how, arguments.strategy)
    return printed(results, lambda result: result.name, plans_json if arguments.json else plans_text)


def run_storage(arguments: argparse.Namespace) -> int:
    from tirlite.bench.storage import storage_json, storage_rows, storage_text
    from tirlite.cli.options import parsed_dims

    limit = min(arguments.time_limit, 1.0) if arguments.quick else arguments.time_limit
    rows = storage_rows(arguments.paths, parsed_dims(arguments.bind, "--bind"), limit)
    return printed(rows, lambda result: result.name, storage_json if arguments.json else storage_text)
