"""Contents and a path in, a file out that holds all of them or was never touched."""

from __future__ import annotations

import os
from pathlib import Path

from tirlite.cli.command_error import CommandError
from tirlite.diag import Message


class CannotWrite(Message):
    """The file system refuses to take an output.

    Example: `python -m tirlite demo --out missing/corners.png`, where there is no folder `missing`.
    Fix: Make the folder, or choose a place that may be written to.
    """

    code = "cannot-write"
    raises = CommandError
    title = "cannot write `{path}`: {reason}"

    path: str
    reason: str


def refuse_unwritable(path: Path) -> None:
    """Raises CommandError where it is plain beforehand that `path` cannot be written."""
    if not path.parent.is_dir():
        raise CannotWrite(str(path), f"there is no folder `{path.parent}`").error()
    if path.is_dir():
        raise CannotWrite(str(path), "that is a folder").error()


def write_file(path: Path, contents: bytes) -> None:
    """Writes a file by way of another one beside it, so that nobody ever sees a half of it. Raises CommandError."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        try:
            beside.write_bytes(contents)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise CannotWrite(str(path), error.strerror or str(error)).error() from None
