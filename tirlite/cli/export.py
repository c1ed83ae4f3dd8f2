"""`tirlite export FILE.py:NAME | MODEL.onnx`: writes a kernel or a network as files for programs without Python."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tirlite.cli.command_error import input_at_fault
from tirlite.cli.options import add_known, bad_option, dims_of_model, file_path, parsed_constants, parsed_dims
from tirlite.cli.output_file import CannotWrite
from tirlite.cli.progress import working

if TYPE_CHECKING:
    from tirlite.driver import Kernel
    from tirlite.graph import CompiledGraph

_DESCRIPTION = """\
Compiles a kernel or an ONNX model, and writes an object file, a C header and a snippet for CMake. Prints their paths.
"""
_EPILOG = """\
examples:
  tirlite export blur.py:blur --out build
  tirlite export resnet50.onnx --out build --name resnet --bind batch=1 --weights file
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "export",
        help="write a kernel or a network as an object file and a C header",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("source", metavar="FILE.py:NAME|MODEL.onnx", help="a kernel in a Python file, or a model")
    parser.add_argument(
        "--out", metavar="DIR", type=file_path, required=True, help="the output folder, created if missing"
    )
    parser.add_argument("--name", metavar="NAME", help="the name of the C function")
    parser.add_argument("--target", metavar="T", default="host", help="host, x86-64, -v2, -v3, -v4 or aarch64")
    parser.add_argument(
        "--weights",
        choices=("object", "file"),
        default="object",
        help="put constants into the object or a file of their own",
    )
    add_known(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Writes the files and prints their paths."""
    options = {"name": arguments.name, "target": arguments.target, "weights": arguments.weights}
    with input_at_fault(), working(f"compiling {arguments.source}"):
        if arguments.source.endswith(".onnx"):
            from tirlite.graph import compile, from_onnx  # noqa: A004

            bound, constants = parsed_dims(arguments.bind, "--bind"), parsed_constants(arguments.constant)
            dims = dims_of_model([Path(arguments.source)], bound, arguments.facts)
            made: Kernel | CompiledGraph = compile(from_onnx(arguments.source, dims=dims, constants=constants))
        else:
            from tirlite.cli.kernel_file import load_kernel

            for option, given in (
                ("--bind", arguments.bind),
                ("--facts", arguments.facts),
                ("--constant", arguments.constant),
            ):
                if given:
                    raise bad_option(f"{option} {given[0]}", "it is for models, and a kernel is given")
            made = load_kernel(arguments.source)
        try:
            paths = made.export(arguments.out, **options)
        except OSError as error:
            raise CannotWrite(str(error.filename), error.strerror or str(error)).error() from None
    for path in paths:
        print(path)
    return 0
