"""`tirlite run MODEL.onnx`: runs a model on arrays from files or random ones; shows its outputs and memory."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tirlite.cli.command_error import CommandError, input_at_fault
from tirlite.cli.options import (
    add_known,
    add_several,
    bad_option,
    by_identifier,
    dims_of_model,
    loaded,
    pairs,
    parsed_constants,
    parsed_dims,
    refuse_other_dims,
    whole,
)
from tirlite.cli.progress import interruptible, working
from tirlite.diag import KernelRunError, TirliteError

if TYPE_CHECKING:
    import numpy.typing as npt

    from tirlite.graph import CompiledGraph, Function

_DESCRIPTION = """\
Compiles an ONNX model and runs it once. Inputs that are not given are filled with seeded random numbers, indices with
valid ones; dims that are not given take the least value that the operators accept. Prints each output, the bytes
planned for the tensors in between, the bound that no plan can beat, and the times.
"""
_EPILOG = """\
examples:
  tirlite run resnet50.onnx --input data=photo.npy
  tirlite run encoder.onnx --dim batch=4 --dim sequence=128 --planner per_shape
  tirlite run encoder.onnx --bind batch=1 --dim sequence=128
  tirlite run resnet50.onnx --profile
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "run",
        help="compile and run an ONNX model, and show its outputs, memory and time",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL", help="a model, *.onnx")
    add_several(parser, "--input", "NAME=FILE", "an array for an input")
    add_several(parser, "--dim", "NAME=N", "the value of a dim; by default the least")
    add_known(parser)
    parser.add_argument("--planner", metavar="P", default="auto", help="the planning strategy (%(default)s)")
    parser.add_argument("--seed", metavar="N", type=whole(0), default=0, help="seed of the random inputs (%(default)d)")
    parser.add_argument("--threads", metavar="N", type=whole(1), help="the most threads for its parallel loops")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print JSON")
    shown.add_argument("--profile", action="store_true", help="print the time and the bytes of each operator as well")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Reads, compiles, runs and prints."""
    from tirlite.cli.model_report import Report, report_json, report_text
    from tirlite.graph import compile, from_onnx  # noqa: A004
    from tirlite.graph.arguments import bind

    started = perf_counter()
    with input_at_fault():
        model = Path(arguments.model)
        bound = parsed_dims(arguments.bind, "--bind")
        given = by_identifier(model, parsed_dims(arguments.dim))
        dims = dims_of_model([model], bound, arguments.facts)
        with working(f"reading {model}"):
            function = from_onnx(model, dims=dims, constants=parsed_constants(arguments.constant))
            arrays = _arrays(function, dict(pairs("--input", arguments.input)), given, arguments.seed)
        _, binding = bind(function, arrays)
        sizes = {dim.name: value for dim, value in binding.items()}
        refuse_other_dims(function, given, binding)
        with working(f"compiling {model}, and running it for the first time"):
            graph: CompiledGraph = compile(function, strategy=arguments.planner, threads=arguments.threads)
            try:
                found = graph(*arrays)
            except TirliteError as error:
                raise _of_random(function, dict(pairs("--input", arguments.input)), error) from None
    first, seconds = perf_counter(), None
    with interruptible() as interrupt, suppress(KeyboardInterrupt), working(f"running {model}"):
        graph(*arrays)
        seconds = perf_counter() - first
    outputs = dict(zip(function.outputs, found if isinstance(found, tuple) else (found,), strict=True))
    report = Report.of(outputs, graph.plans(*arrays), {**bound, **sizes}, first - started, seconds)
    print(report_json(report) if arguments.json else report_text(report))
    if arguments.profile and not interrupt.code:
        with working(f"timing the operators of {model}"):
            profile = graph.profile(*arrays)
        print(profile)
    return interrupt.code


def _of_random(function: Function, given: Mapping[str, str], error: TirliteError) -> TirliteError:
    """The error of a run, with advice if a made-up input may have caused it."""
    names = [param.name for param in function.params if param.name not in given and param.tensor.dtype.is_integer]
    if not names or not isinstance(error, KernelRunError):
        return error
    fault = bad_option(f"--input {names[0]}=...", "it is not given, and the model may not take what was made up for it")
    return CommandError(*error.messages, *fault.messages)


def _arrays(
    function: Function, files: Mapping[str, str], given: Mapping[str, int], seed: int
) -> list[npt.NDArray[Any]]:
    """An array for each parameter: from its file, or random, with sizes that fit the others and the given dims.

    Raises CommandError for an input that the function does not have.
    """
    import numpy as np

    from tirlite.analysis.integers.array_bounds import ADDRESSABLE
    from tirlite.graph.sample_arguments import sample_arguments, sample_sizes, sizes_by_name

    names, dims = [param.name for param in function.params], sizes_by_name(function)
    for name in files:
        if name not in names:
            raise bad_option(f"--input {name}={files[name]}", f"the inputs are {', '.join(names)}")
    found = {name: loaded(f"--input {name}={file}", file) for name, file in files.items()}
    known = dict(given) | {
        name: array.shape[axis]
        for param in function.params
        if (array := found.get(param.name)) is not None and array.ndim == param.tensor.rank
        for axis, extent in enumerate(param.shape)
        for name, size in dims.items()
        if extent == size
    }
    sizes = sample_sizes(function, known)
    for name, size in given.items():
        if size >= ADDRESSABLE:
            raise bad_option(f"--dim {name}={size}", "no array has so many elements")
    return sample_arguments(function, sizes, np.random.default_rng(seed), found)
