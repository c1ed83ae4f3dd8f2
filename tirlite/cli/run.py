"""`tirlite run MODEL.onnx`: a model as native code, on arrays from files or random ones; its outputs and its memory."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tirlite.cli.command_error import CommandError, input_at_fault
from tirlite.cli.numbers import whole
from tirlite.diag import Message

if TYPE_CHECKING:
    import numpy.typing as npt

    from tirlite.graph import CompiledGraph, Function

_DESCRIPTION = """\
Compiles an ONNX model and runs it once on each of the inputs given, with seeded random numbers for all others. Prints
each output, the bytes planned for the tensors in between, the bound that no plan can beat, and how long it took.
"""
_EPILOG = """\
examples:
  tirlite run resnet50.onnx --input data=photo.npy
  tirlite run encoder.onnx --dim batch=4 --dim sequence=128 --planner per_shape
"""


class BadRunOption(Message):
    """An option of `tirlite run` or `tirlite bench graphs` does not fit the model.

    Example: `tirlite run net.onnx --dim batch=many`.
    Fix: Write `--dim NAME=NUMBER` and `--input NAME=FILE.npy` with names that the model has.
    """

    code = "bad-run-option"
    raises = CommandError
    title = "`{option}`: {why}"
    help = "--dim NAME=NUMBER gives an extent a number, --input NAME=FILE.npy an input an array"

    option: str
    why: str


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
    parser.add_argument("--dim", metavar="NAME=N", action="append", default=[], help="a number for a named extent")
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
        function = from_onnx(arguments.model, dims=told_dims(arguments.dim))
        arrays = _arrays(function, dict(_pairs("--input", arguments.input)), np.random.default_rng(arguments.seed))
        graph: CompiledGraph = compile(function, strategy=arguments.planner)
        found = graph(*arrays)
    first = perf_counter()
    graph(*arrays)
    seconds = perf_counter() - first
    outputs = dict(zip(function.outputs, found if isinstance(found, tuple) else (found,), strict=True))
    _, binding = bind(function, arrays)
    sizes = {dim.name: value for dim, value in binding.items()}
    plan = graph.plan_at(**sizes) if arguments.planner == "per_shape" and sizes else graph.plan
    report = Report.of(outputs, plan, binding, first - started, seconds)
    print(report_json(report) if arguments.json else report_text(report))
    return 0


def told_dims(given: list[str]) -> dict[str, int]:
    """The values of `--dim NAME=N`, by name. Raises CommandError for what is not written so."""
    return {name: _count(name, count) for name, count in _pairs("--dim", given)}


def _pairs(option: str, given: list[str]) -> list[tuple[str, str]]:
    made = []
    for each in given:
        name, sign, value = each.rpartition("=")
        if not (name and sign and value):
            raise BadRunOption(f"{option} {each}", "it has no name, or no value").error()
        made.append((name, value))
    return made


def _count(name: str, text: str) -> int:
    if not text.isdecimal():
        raise BadRunOption(f"--dim {name}={text}", "the value is no whole number").error()
    return int(text)


def _arrays(function: Function, files: Mapping[str, str], rng: Any) -> list[npt.NDArray[Any]]:
    """An array for each parameter: from its file, else random, of extent 1 along dims that nothing tells."""
    import numpy as np

    names = [param.name for param in function.params]
    for name in files:
        if name not in names:
            raise BadRunOption(f"--input {name}={files[name]}", f"the inputs are {', '.join(names)}").error()
    loaded = {}
    for name, file in files.items():
        try:
            loaded[name] = np.load(Path(file), allow_pickle=False)
        except (OSError, ValueError) as error:
            raise BadRunOption(f"--input {name}={file}", f"it cannot be read: {error}").error() from None
    binding = {
        extent: array.shape[axis]
        for param in function.params
        if (array := loaded.get(param.name)) is not None and array.ndim == param.tensor.rank
        for axis, extent in enumerate(param.shape)
    }
    return [loaded[param.name] if param.name in loaded else _random(param, binding, rng) for param in function.params]


def _random(param: Any, binding: Mapping[Any, int], rng: Any) -> npt.NDArray[Any]:
    shape = tuple(each if isinstance(each, int) else binding.get(each, 1) for each in param.shape)
    stored = param.dtype.stored
    made: npt.NDArray[Any]
    if param.dtype.is_float and stored.kind == "f":
        made = rng.standard_normal(shape).astype(stored)
    else:
        made = rng.integers(0, 2, shape).astype(stored)
    return made
