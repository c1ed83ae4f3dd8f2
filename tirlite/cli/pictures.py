"""Reads picture files as gray arrays and writes them back: .pgm and .npy by NumPy alone, all else by Pillow."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from importlib import import_module
from importlib.resources import as_file, files
from pathlib import Path
from types import ModuleType

import numpy as np
import numpy.typing as npt

from tirlite.cli.command_error import CommandMessage
from tirlite.diag import did_you_mean

Gray = npt.NDArray[np.uint8]


class UnreadablePicture(CommandMessage):
    """The picture that the command line names is missing, or has a format that is not read here.

    Example: `python -m tirlite demo notes.txt`.
    Fix: Give a .pgm or .npy file, or with Pillow installed any picture that Pillow reads.
    """

    title = "cannot read `{path}`: {reason}"
    help = "{advice}"

    path: str
    reason: str
    advice: str = ""


class NeedsPillow(CommandMessage):
    """A format that NumPy alone cannot read or write.

    Example: `python -m tirlite demo photograph.jpg` without Pillow.
    """

    title = "`{path}` needs Pillow, which is not installed"
    help = "run `pip install 'tirlite[viz]'`, or use a .pgm or .npy file"

    path: str


class UnknownFormat(CommandMessage):
    """The ending of an output's name tells no picture format.

    Example: `python -m tirlite demo --out corners`.
    """

    title = "cannot write `{path}`: its ending names no picture format"
    help = "give it the ending .pgm or .npy, or with Pillow .png"

    path: str


def photograph() -> Gray:
    """The picture that comes with tirlite, 512 x 512."""
    with as_file(files("tirlite.cli") / "photograph.npz") as path, np.load(path) as archive:
        image: Gray = archive["image"]
        return image


def read_picture(path: Path) -> Gray:
    """The picture in a file, its colours as gray. Raises CommandError."""
    if not path.is_file():
        reason = "that is a folder" if path.is_dir() else "there is no such file"
        raise UnreadablePicture(str(path), reason, "" if path.is_dir() else _other_files(path)).error()
    readers: dict[str, Callable[[bytes], Gray]] = {".pgm": _from_pgm, ".npy": _from_npy}
    reader = readers.get(path.suffix.lower())
    try:
        image = reader(path.read_bytes()) if reader is not None else _from_pillow(path)
        if not image.size:
            raise ValueError("it has no pixels")
        return image
    except (OSError, ValueError, EOFError) as error:
        raise UnreadablePicture(str(path), str(error)).error() from None


def picture_bytes(image: Gray, path: Path) -> bytes:
    """What the file `path` is to contain, in the format that its ending names. Raises CommandError."""
    file = io.BytesIO()
    match path.suffix.lower():
        case ".pgm":
            height, width = image.shape
            file.write(b"P5\n%d %d\n255\n" % (width, height) + image.tobytes())
        case ".npy":
            np.save(file, image)
        case "":
            raise UnknownFormat(str(path)).error()
        case ending:
            pillow = _pillow(path)
            names = pillow.registered_extensions()
            if ending not in names:
                raise UnknownFormat(str(path)).error()
            pillow.fromarray(image).save(file, names[ending])
    return file.getvalue()


def _other_files(path: Path) -> str:
    return did_you_mean(path.name, (each.name for each in path.parent.iterdir())) if path.parent.is_dir() else ""


def _from_pgm(data: bytes) -> Gray:
    header = re.match(rb"(P[25])(?:\s|#[^\n]*\n)+(\d+)(?:\s|#[^\n]*\n)+(\d+)(?:\s|#[^\n]*\n)+(\d+)\s", data)
    if header is None:
        raise ValueError("it does not begin as a PGM file does")
    width, height, most = (int(number) for number in header.group(2, 3, 4))
    if not 0 < most < 65536:
        raise ValueError(f"its largest value is {most}, and must be between 1 and 65535")
    body = data[header.end() :]
    if header.group(1) == b"P2":
        pixels = np.array(body.split(), np.int64)
    else:
        kind = np.dtype(np.uint8 if most < 256 else ">u2")
        pixels = np.frombuffer(body[: width * height * kind.itemsize], kind).astype(np.int64)
    if pixels.size < width * height:
        raise ValueError(f"it ends after {pixels.size} of {width} x {height} pixels")
    scaled = np.clip(pixels[: width * height], 0, most) * 255 // most
    return scaled.astype(np.uint8).reshape(height, width)


def _from_npy(data: bytes) -> Gray:
    array = np.load(io.BytesIO(data), allow_pickle=False)
    if not isinstance(array, np.ndarray) or array.dtype != np.uint8 or array.ndim != 2:
        raise ValueError("it does not hold an array of uint8 with two axes")
    return np.ascontiguousarray(array)


def _from_pillow(path: Path) -> Gray:
    with _pillow(path).open(path) as picture:
        return np.array(picture.convert("L"))


def _pillow(path: Path) -> ModuleType:
    try:
        return import_module("PIL.Image")
    except ImportError:
        raise NeedsPillow(str(path)).error() from None
