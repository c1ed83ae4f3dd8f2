"""Writes files atomically."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tirlite.cli.command_error import CommandMessage


class CannotWrite(CommandMessage):
    """The file system refuses to take an output.

    Example: `python -m tirlite demo --out missing/corners.png`, where there is no folder `missing`.
    Fix: Make the folder, or choose a place that may be written to.
    """

    title = "cannot write `{path}`: {reason}"


def refuse_unwritable(path: Path) -> None:
    """Raises CommandError if it is clear beforehand that `path` cannot be written."""
    try:
        reason = _why_not(path)
    except OSError as error:  # a name that no file can have
        reason = error.strerror or str(error)
    if reason is not None:
        raise CannotWrite(str(path), reason).error()


def _why_not(path: Path) -> str | None:
    if "\0" in str(path):
        return "no file can have this name"
    if str(path) == "-":
        return "`-` names no file; standard output is `/dev/stdout`"
    folder = real_path(path).parent if path.is_symlink() else path.parent
    if not folder.is_dir():
        return f"there is no folder `{folder}`"
    if path.is_dir():
        return "that is a folder"
    written = path if _is_device(path) else folder.absolute()
    return None if os.access(written, os.W_OK) else f"there is no permission to write to `{written}`"


def write_file(path: Path, contents: bytes) -> None:
    """Writes a file by renaming a temporary one, so that nobody sees part of it. Raises CommandError.

    Follows symbolic links, and keeps the permissions of an existing file. A device or a pipe, such as `/dev/stdout`, is
    written to directly.
    """
    try:
        if _is_device(path):
            with path.open("wb") as device:
                device.write(contents)
        else:
            _replace(real_path(path), contents)
    except OSError as error:
        raise CannotWrite(str(path), error.strerror or str(error)).error() from None


def real_path(path: Path) -> Path:
    """The path with all symbolic links resolved, even with circular links, at which `Path.resolve` fails.

    A path with a NUL stays as it is.
    """
    try:
        return Path(os.path.realpath(path))
    except ValueError:
        return path


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file()


def _replace(path: Path, contents: bytes) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(contents)
        if path.exists():
            shutil.copymode(path, beside)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
