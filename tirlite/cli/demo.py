"""`tirlite demo [IMAGE]`: the whole way of one kernel, on a photograph, in which corners are marked."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt

_DESCRIPTION = """\
Finds the corners in a picture by a kernel of many stages, and shows what becomes of the kernel: its loop nest after
the rewrite, its storage plan, its result and its speed beside NumPy's.
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to those of the program."""
    parser = commands.add_parser(
        "demo",
        help="find the corners in a photograph, and show each step of the compilation",
        description=_DESCRIPTION,
    )
    parser.add_argument(
        "image",
        metavar="IMAGE",
        nargs="?",
        type=Path,
        help="a .pgm or .npy file; with Pillow any format",
    )
    parser.add_argument(
        "--out", metavar="FILE", type=Path, default=Path("corners.pgm"), help="where to write the result (%(default)s)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the tour and saves the picture."""
    from tirlite.cli.output_file import real_path, refuse_unwritable, write_file
    from tirlite.cli.pictures import photograph, picture_bytes, read_picture
    from tirlite.cli.tour import tour

    image = photograph() if arguments.image is None else read_picture(arguments.image)
    # What cannot be written is refused before the work.
    refuse_unwritable(arguments.out)
    picture_bytes(image[:1, :1], arguments.out)
    response = tour(image)
    corners = find_corners(response)
    write_file(arguments.out, picture_bytes(mark_corners(image, corners), arguments.out))
    print(f"  {len(corners)} corners are marked in {real_path(arguments.out)}")
    return 0


Response = npt.NDArray[np.float32]
Gray = npt.NDArray[np.uint8]
Points = npt.NDArray[np.intp]

# A corner is at least this part of the strongest one, and the strongest within this many pixels to each side.
_PART = 0.02
_REACH = 4


def find_corners(response: Response) -> Points:
    """The corners, as rows of (row, column), in the order of the rows of the picture."""
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
    """Draws a square of `size` + 1 pixels a side, as far as it lies in the picture."""
    bottom, right = top + size, left + size
    rows, columns = slice(max(top, 0), bottom + 1), slice(max(left, 0), right + 1)
    for row in (top, bottom):
        if 0 <= row < image.shape[0]:
            image[row, columns] = value
    for column in (left, right):
        if 0 <= column < image.shape[1]:
            image[rows, column] = value
