"""The tour of the demo: computes the Harris response of a picture, and prints each step of the compilation."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.resources import as_file, files
from itertools import groupby
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import numpy as np
import numpy.typing as npt

from tirlite import driver
from tirlite.cli.command_error import CommandMessage
from tirlite.cli.turns import medians
from tirlite.diag import did_you_mean
from tirlite.driver import Kernel
from tirlite.kernels.harris import harris, reference
from tirlite.plan import Plan
from tirlite.show import table
from tirlite.sizes import Dim

Gray = npt.NDArray[np.uint8]
Response = npt.NDArray[np.float32]


class UnreadablePicture(CommandMessage):
    """The picture that the command line names is missing, or has a format that is not read here.

    Example: `python -m tirlite demo notes.txt`.
    Fix: Give a .pgm or .npy file, or with Pillow installed any picture that Pillow reads.
    """

    title = "cannot read `{path}`: {reason}"
    help = "{advice}"

    advice: str = ""


class NeedsPillow(CommandMessage):
    """A format that NumPy alone cannot read or write.

    Example: `python -m tirlite demo photograph.jpg` without Pillow.
    """

    title = "`{path}` needs Pillow, which is not installed"
    help = "run `pip install 'tirlite[viz]'`, or use a .pgm or .npy file"


class UnknownFormat(CommandMessage):
    """The ending of an output's name tells no picture format.

    Example: `python -m tirlite demo --out corners`.
    """

    title = "cannot write `{path}`: its ending names no picture format"
    help = "give it the ending .pgm or .npy, or with Pillow .png"


def photograph() -> Gray:
    """The picture that comes with tirlite, 512 x 512."""
    with as_file(files("tirlite.cli") / "photograph.npz") as path, np.load(path) as archive:
        image: Gray = archive["image"]
        return image


def read_picture(path: Path) -> Gray:
    """The picture in a file, converted to gray. Raises CommandError."""
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
    """The content of the file `path` in the format of its ending. Raises CommandError."""
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


Points = npt.NDArray[np.intp]

# A corner has at least this part of the strongest response, and the strongest within this many pixels to each side.
_PART = 0.02
_REACH = 4


def find_corners(response: Response) -> Points:
    """The corners, as rows of (row, column), in order of rows."""
    strongest = response
    for axis in (0, 1):
        padding = [(_REACH, _REACH) if each == axis else (0, 0) for each in (0, 1)]
        padded = np.pad(strongest, padding, constant_values=-np.inf)
        windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * _REACH + 1, axis)
        strongest = windows.max(axis=-1)
    threshold = max(_PART * response.max(initial=0), np.finfo(np.float32).tiny)
    return np.argwhere((response == strongest) & (response >= threshold))


def mark_corners(image: Gray, corners: Points) -> Gray:
    """`image`, darkened, with a square around each corner."""
    marked = image // 2
    for size, value in ((3, 255), (2, 0)):
        for row, column in corners:
            _frame(marked, row - size, column - size, 2 * size, value)
    return marked


def _frame(image: Gray, top: int, left: int, size: int, value: int) -> None:
    """Draws a square of `size` + 1 pixels per side, clipped to the picture."""
    bottom, right = top + size, left + size
    rows, columns = slice(max(top, 0), bottom + 1), slice(max(left, 0), right + 1)
    for row in (top, bottom):
        if 0 <= row < image.shape[0]:
            image[row, columns] = value
    for column in (left, right):
        if 0 <= column < image.shape[1]:
            image[rows, column] = value


# The most runs of each side, which alternate, and seconds after which no more are started.
_RUNS, _PATIENCE = 21, 0.25
# Longer loop bodies are folded.
_MOST_LINES = 3


def tour(image: Gray) -> Response:
    """Prints the kernel, its loop nest, its plan, the chart, the check and the times. Returns the kernel's result."""
    height, width = image.shape
    print(f"tirlite: the corners in a picture of {width} x {height} pixels")
    _part("The kernel: each stage has a temporary of its own", _source(harris))
    as_written = driver.compile(harris, schedule=None)
    _part(
        "The loop nest after the rewrite: few allocations, the other temporaries are views of them", _nest(as_written)
    )
    dims = [var.dim for var in harris.ir.dims]
    binding = {dim: size for dim, size in zip(dims, image.shape, strict=True) if dim is not None}
    _part("The storage plan", _plan(as_written, binding))
    _part("Which bytes hold what, over time", as_written.plan.at(binding).to_text().splitlines()[1:])
    response = harris(image)
    assert isinstance(response, np.ndarray)
    _part("The check against NumPy", [_check(response, reference(image))])
    _part("The time", _times(image))
    _part("The picture", [])
    return response


def _part(title: str, lines: Iterable[str]) -> None:
    print(f"\n{title}\n{'-' * len(title)}")
    for line in lines:
        print(f"  {line}".rstrip())


def _source(kernel: Kernel) -> list[str]:
    """The kernel as its author wrote it."""
    span = kernel.ir.span
    assert span is not None
    return dedent("\n".join(span.source.lines)).splitlines()


def _nest(kernel: Kernel) -> list[str]:
    """The rewritten function. Long bodies of loops are folded: their statements are those of the source."""
    lines: list[str] = []
    for is_body, group in groupby(str(kernel.lowered).splitlines(), lambda line: line.startswith(" " * 12)):
        body = list(group)
        lines += [" " * 12 + "...", body[-1]] if is_body and len(body) > _MOST_LINES else body
    return [*lines, "", "In full:", f"python -m tirlite show {_path(kernel)}:{kernel.name} --after storage-rewrite"]


def _path(kernel: Kernel) -> Path:
    """The file of the kernel, as it is named from the current folder."""
    span = kernel.ir.span
    assert span is not None
    path, here = Path(span.source.name), Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _plan(kernel: Kernel, binding: dict[Dim, int]) -> list[str]:
    before, after = driver.compile(kernel, strategy="none", schedule=None).plan, kernel.plan
    figures = [
        ("before", _figures(before, before.at(binding).total)),
        ("after", _figures(after, after.at(binding).total)),
        ("lower bound", f"{after.lower_bound} bytes: no plan can do with less"),
        ("gap", _gap(after, binding)),
    ]
    rows = [
        (pool, name, str(after.decisions[name]))
        for pool in after.pools
        for name in after.sharers(pool)
        if name in after.decisions
    ]
    sharing = table(("storage", "used by", "why"), _once(rows))
    return [*(f"{name:<12} {figure}" for name, figure in figures), "", *sharing.splitlines()]


def _figures(plan: Plan, total: object) -> str:
    assert isinstance(total, int)
    return f"{plan.total} bytes in {len(plan.pools)} allocations, here {total / 2**20:.2f} MiB"


def _gap(plan: Plan, binding: dict[Dim, int]) -> str:
    if plan.proved_optimal:
        return "0 %, proved for all sizes"
    gap = plan.at(binding).gap
    return f"{gap:.1%} here" if gap is not None else "depends on the sizes"


def _once(rows: Iterable[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """The rows, the first column blank where it repeats the row above."""
    shown, above = [], ""
    for pool, name, why in rows:
        shown.append(("" if pool == above else pool, name, why))
        above = pool
    return shown


def _check(response: Response, expected: Response) -> str:
    if np.array_equal(response, expected):
        return f"all {response.size:,} values are the same, bit for bit"
    largest = np.abs(response - expected).max()
    return f"the largest difference is {largest:.3g}, the largest value {np.abs(expected).max():.3g}"


def _times(image: Gray) -> list[str]:
    ours, theirs = medians([lambda: harris(image), lambda: reference(image)], _RUNS, patience=_PATIENCE)
    compiling = harris.timing.total
    return [
        f"NumPy    {1e3 * theirs:8.2f} ms",
        f"tirlite  {1e3 * ours:8.2f} ms, which is {theirs / ours:.1f} times as fast (medians, the two in turns)",
        f"compiled in {1e3 * compiling:.0f} ms, once for all sizes",
    ]
