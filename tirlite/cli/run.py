"""`tirlite run MODEL.onnx`: a model as native code, on arrays from files or random ones; its outputs and its memory."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tirlite.cli.command_error import input_at_fault
from tirlite.cli.model_options import add_constant, bad_option, loaded, pairs, told_constants, told_dims
from tirlite.cli.numbers import whole

if TYPE_CHECKING:
    import numpy.typing as npt

    from tirlite.graph import CompiledGraph, Function
    from tirlite.sizes import Dim

_DESCRIPTION = """\
Compiles an ONNX model and runs it once on each of the inputs given, with seeded random numbers for all others. Prints
each output, the bytes planned for the tensors in between, the bound that no plan can beat, and how long it took.
"""
_EPILOG = """\
examples:
  tirlite run resnet50.onnx --input data=photo.npy
  tirlite run encoder.onnx --dim batch=4 --dim sequence=128 --planner per_shape
  tirlite run encoder.onnx --bind batch=1 --dim sequence=128
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to those of the program."""
    parser = commands.add_parser(
        "run",
        help="run an ONNX model as native code, and show its outputs and its memory",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL", help="a model, *.onnx")
    parser.add_argument("--input", metavar="NAME=FILE", action="append", default=[], help="an input, as *.npy")
    parser.add_argument(
        "--dim", metavar="NAME=N", action="append", default=[], help="a value of a dim to run at, else 1"
    )
    parser.add_argument(
        "--bind", metavar="NAME=N", action="append", default=[], help="a number for a dim before the model is read"
    )
    add_constant(parser)
    parser.add_argument("--planner", metavar="P", default="auto", help="who plans, auto unless told otherwise")
    parser.add_argument("--seed", metavar="N", type=whole(0), default=0, help="of the random inputs (%(default)d)")
    parser.add_argument("--json", action="store_true", help="print one object for machines")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Reads, compiles, runs, prints."""
    import numpy as np

    from tirlite.cli.model_report import Report, report_json, report_text
    from tirlite.graph import compile, from_onnx  # noqa: A004
    from tirlite.graph.arguments import bind

    started = perf_counter()
    with input_at_fault():
        bound, told = told_dims(arguments.bind, "--bind"), told_dims(arguments.dim)
        function = from_onnx(arguments.model, dims=bound, constants=told_constants(arguments.constant))
        files = dict(pairs("--input", arguments.input))
        arrays = _arrays(function, files, _dims_told(function, told), np.random.default_rng(arguments.seed))
        _, binding = bind(function, arrays)
        sizes = {dim.name: value for dim, value in binding.items()}
        _refuse_other(told, sizes)
        graph: CompiledGraph = compile(function, strategy=arguments.planner)
        found = graph(*arrays)
    first = perf_counter()
    graph(*arrays)
    seconds = perf_counter() - first
    outputs = dict(zip(function.outputs, found if isinstance(found, tuple) else (found,), strict=True))
    plan = graph.plan_at(**sizes) if sizes else graph.plan
    report = Report.of(outputs, plan, {**bound, **sizes}, first - started, seconds)
    print(report_json(report) if arguments.json else report_text(report))
    return 0


def _dims_told(function: Function, told: Mapping[str, int]) -> dict[Dim, int]:
    """The values of a function's dims, 1 where none is told. Raises CommandError for a dim that it does not have."""
    from tirlite.sizes import dims_of

    dims = dict.fromkeys(dim for param in function.params for extent in param.shape for dim in dims_of(extent))
    names = [dim.name for dim in dims]
    for name, value in told.items():
        if name not in names:
            listed = ", ".join(names) or "none"
            raise bad_option(f"--dim {name}={value}", f"there is no dim `{name}`; it has {listed}")
    return {dim: told.get(dim.name, 1) for dim in dims}


def _refuse_other(told: Mapping[str, int], sizes: Mapping[str, int]) -> None:
    for name, value in told.items():
        if sizes[name] != value:
            raise bad_option(f"--dim {name}={value}", f"the inputs have {name} = {sizes[name]}")


def _arrays(function: Function, files: Mapping[str, str], told: Mapping[Dim, int], rng: Any) -> list[npt.NDArray[Any]]:
    """An array for each parameter: from its file, else random, as large as the others and what is told make it."""
    names = [param.name for param in function.params]
    for name in files:
        if name not in names:
            raise bad_option(f"--input {name}={files[name]}", f"the inputs are {', '.join(names)}")
    found = {name: loaded(f"--input {name}={file}", file) for name, file in files.items()}
    binding = {
        **told,
        **{
            extent: array.shape[axis]
            for param in function.params
            if (array := found.get(param.name)) is not None and array.ndim == param.tensor.rank
            for axis, extent in enumerate(param.shape)
            if extent in told
        },
    }
    return [found[param.name] if param.name in found else _random(param, binding, rng) for param in function.params]


def _random(param: Any, binding: Mapping[Dim, int], rng: Any) -> npt.NDArray[Any]:
    from tirlite.sizes import evaluate

    shape = tuple(evaluate(each, binding) for each in param.shape)
    stored = param.dtype.stored
    made: npt.NDArray[Any]
    if param.dtype.is_float and stored.kind == "f":
        made = rng.standard_normal(shape).astype(stored)
    else:
        made = rng.integers(0, 2, shape).astype(stored)
    return made
