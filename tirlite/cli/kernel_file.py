"""Loads the kernel named by `FILE.py:NAME`, by running the file as Python would."""

from __future__ import annotations

import runpy
import sys
import traceback
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path

from tirlite import driver
from tirlite.cli.command_error import CommandMessage
from tirlite.diag import Source, Span, TirliteError, did_you_mean
from tirlite.driver import Kernel
from tirlite.ir import PrimFunc


class NoKernelFile(CommandMessage):
    """The file that the command line names does not exist.

    Example: `python -m tirlite show blurr.py:blur`, where the file is `blur.py`.
    Fix: Correct the path; the message lists files with like names.
    """

    title = "there is no file `{path}`"
    help = "{advice}"


class NotPythonFile(CommandMessage):
    """What the command line names is no Python file, so there are no kernels in it.

    Example: `python -m tirlite show buffers.csv`.
    Fix: Name the Python file that defines the kernel; a table of buffers goes to `python -m tirlite plan`.
    """

    title = "`{path}` is no Python file: its name does not end in `.py`"
    help = "a kernel is named as `FILE.py:NAME`; tables and models are taken by `python -m tirlite plan`"


class NoKernelNamed(CommandMessage):
    """The file has no kernel of the name that stands after the colon.

    Example: `python -m tirlite show blur.py:blurr`.
    Fix: Correct the name; the message lists the kernels of the file that are alike.
    """

    title = "`{path}` has no kernel `{name}`"
    help = "{advice}"


class WhichKernel(CommandMessage):
    """The name of the kernel was left out, and the file does not have exactly one.

    Example: `python -m tirlite show filters.py`, where `filters.py` defines `blur` and `sharpen`.
    Fix: Name the kernel: `filters.py:blur`.
    """

    title = "`{path}` has {count} kernels"
    help = "{advice}"


class FailedFile(CommandMessage):
    """The file with the kernel raised an error of its own.

    Example: `python -m tirlite show blur.py:blur`, where `blur.py` imports a module that is not installed.
    Fix: Run the file by itself with `python blur.py`, and mend what that shows.
    """

    title = "`{path}` cannot be run: {fault}"
    label = "raised here"


def load_kernel(place: str) -> Kernel:
    """The kernel at `FILE.py:NAME`; `FILE.py` is enough if it has only one.

    Raises CommandError if there is none, and KernelError if it is ill-formed.
    """
    file, _, name = place.rpartition(":") if not place.endswith(".py") else (place, "", "")
    path = Path(file or name)
    kernels = kernels_in(path)
    names = ", ".join(f"`{each}`" for each in kernels)
    if file and name in kernels:
        return kernels[name]
    if file and name:
        known = f"its kernels are {names}" if kernels else "it has no kernel at all"
        raise NoKernelNamed(str(path), name, did_you_mean(name, kernels, known)).error()
    if len(kernels) == 1:
        return next(iter(kernels.values()))
    example = f"write `{path}:{next(iter(kernels))}`; its kernels are {names}" if kernels else "mark one by @tl.kernel"
    raise WhichKernel(str(path), len(kernels), example).error()


def kernels_in(path: Path) -> dict[str, Kernel]:
    """The kernels of a file, by name. Raises CommandError if the file cannot be run."""
    if not path.is_file():
        raise NoKernelFile(str(path), _other_files(path)).error()
    if path.suffix != ".py":
        raise NotPythonFile(str(path)).error()
    return {
        name: value if isinstance(value, Kernel) else driver.compile(value)
        for name, value in _run(path).items()
        if isinstance(value, Kernel | PrimFunc)
    }


def _other_files(path: Path) -> str:
    if path.is_dir():
        return "that is a folder: give the path of a Python file in it"
    folder = path.parent
    if not folder.is_dir():
        return f"there is no folder `{folder}` either"
    advice = "give the path of a Python file, and the name of a kernel in it"
    return did_you_mean(path.name, (each.name for each in folder.glob("*.py")), advice)


def _run(path: Path) -> Mapping[str, object]:
    """The names that the file defines. It may import from its own folder; its output goes to standard error."""
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        with redirect_stdout(sys.stderr):
            return runpy.run_path(str(path), run_name=path.stem)
    except TirliteError:
        raise
    except (Exception, SystemExit) as error:
        message = FailedFile(str(path), f"{type(error).__name__}: {error}", span=_place(path, error))
        raise message.error() from None
    finally:
        sys.path.remove(folder)


def _place(path: Path, error: BaseException) -> Span | None:
    """The line of the file that raised an error."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        line = error.lineno
    else:
        frames = traceback.extract_tb(error.__traceback__)
        line = next((frame.lineno for frame in reversed(frames) if frame.filename == str(path)), None)
    try:
        source = Source.of(str(path), path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
    text = source.line(line) if line is not None else None
    if line is None or text is None:
        return None
    return Span(source, line, len(text) - len(text.lstrip()), line, len(text.rstrip()))
