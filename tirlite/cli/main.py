"""The command line's arguments in, the exit code out.

0 done, 1 the kernel or its run failed, 2 wrongly called, 3 no plan fits the memory there is.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from tirlite.cli import bench, demo, explain, onnx_coverage, plan, run, show
from tirlite.cli.command_error import CommandError
from tirlite.diag import CapacityError, TirliteError
from tirlite.show import write

_COMMANDS = (demo, show, explain, plan, run, bench, onnx_coverage)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; `argv` is what stands behind the program's name."""
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as stop:  # argparse has printed help, or what is wrong
        return int(stop.code or 0)
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except TirliteError as error:
        write(error.styled(), sys.stderr)
        return _exit_code(error)
    except BrokenPipeError:  # whoever read the output has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    return code


def _exit_code(error: TirliteError) -> int:
    if isinstance(error, CommandError):
        return 2
    return 3 if isinstance(error, CapacityError) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tirlite",
        description="A compiler for loop-nest kernels that plans where every temporary lives.",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add(commands)
    return parser
