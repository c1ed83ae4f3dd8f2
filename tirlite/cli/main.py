"""Runs a command line, and returns the exit code.

0 success, 1 the kernel or its run failed, 2 bad arguments, 3 no plan fits the memory there is.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

import tirlite
from tirlite.cli import cache, checkout, completion, demo, explain, export, plan, run, show
from tirlite.cli.command_error import CommandError, CommandMessage
from tirlite.cli.output_file import CannotWrite
from tirlite.diag import CapacityError, TirliteError
from tirlite.show import write

# Errors of writing to standard output; commands report those of other files themselves.
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)

_COMMANDS = (demo, show, explain, plan, run, export, cache, completion)


class LongFileName(CommandMessage):
    """A file is named by more letters than the file system takes.

    Example: `python -m tirlite show` with a name of 300 letters.
    Fix: Correct the name.
    """

    title = "no file can be called `{path}`: the name is too long"


class TooLittleMemory(CommandMessage):
    """There is less memory than an array takes.

    Example: `python -m tirlite run net.onnx --dim batch=1000000000`.
    Fix: Give smaller values to the dims.
    """

    title = "there is not enough memory: {reason}"


class Command(Protocol):
    """A module that is a command."""

    def add(self, commands: argparse._SubParsersAction[argparse.ArgumentParser], /) -> None:
        """Adds the command to the program's; it sets `run`, which returns the exit code."""


def main(argv: Sequence[str] | None = None, more: Sequence[Command] = (checkout,)) -> int:
    """Runs one command; `argv`: the arguments after the program's name. `more`: further commands."""
    _escape_unknown_letters()
    try:
        code = _run(argv, more)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe
        _discard_output()
        return 0
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return _report_error(LongFileName(str(error.filename)).error())
        if error.filename is not None or error.errno not in _UNWRITABLE:
            raise
        _discard_output()
        return _report_error(CannotWrite("standard output", error.strerror or str(error)).error())
    except MemoryError as error:
        return _report_error(TooLittleMemory(str(error) or "Python has no more").error())
    except KeyboardInterrupt:
        return 130
    return code


def _run(argv: Sequence[str] | None, more: Sequence[Command]) -> int:
    try:
        arguments = _parser(more).parse_args(argv)
    except SystemExit as stop:  # argparse has printed help or an error
        return int(stop.code or 0)
    try:
        code: int = arguments.run(arguments)
    except TirliteError as error:
        return _report_error(error)
    return code


def _escape_unknown_letters() -> None:
    r"""Makes standard output escape letters that its encoding lacks, as `\xe9`, as standard error does."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _report_error(error: TirliteError) -> int:
    """Prints an error if standard error is usable, and returns its exit code."""
    if sys.stderr is not None:
        with suppress(OSError):
            write(error.styled(), sys.stderr)
    return _exit_code(error)


def _discard_output() -> None:
    """Redirects the rest of standard output to nowhere, so that Python does not complain about it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _exit_code(error: TirliteError) -> int:
    if isinstance(error, CommandError):
        return 2
    return 3 if isinstance(error, CapacityError) else 1


def _parser(more: Sequence[Command]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tirlite",
        description="A compiler for loop-nest kernels that plans where every temporary lives.",
    )
    parser.add_argument("--version", action="version", version=f"tirlite {tirlite.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (*_COMMANDS, *more):
        command.add(commands)
    return parser
