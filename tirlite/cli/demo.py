"""`tirlite demo [IMAGE]`: a tour of compiling one kernel, on a photograph."""

from __future__ import annotations

import argparse
from pathlib import Path

from tirlite.cli.options import file_path

_DESCRIPTION = """\
Finds the corners in a picture by a kernel of many stages, and shows what becomes of the kernel: its loop nest after
the rewrite, its storage plan, its result and its speed beside NumPy's.
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "demo",
        help="find the corners in a photograph, and show each step of the compilation",
        description=_DESCRIPTION,
    )
    parser.add_argument(
        "image",
        metavar="IMAGE",
        nargs="?",
        type=file_path,
        help="a .pgm or .npy file; with Pillow any format",
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        type=file_path,
        default=Path("corners.pgm"),
        help="where to write the result (%(default)s)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the tour and saves the picture."""
    from tirlite.cli.output_file import real_path, refuse_unwritable, write_file
    from tirlite.cli.tour import find_corners, mark_corners, photograph, picture_bytes, read_picture, tour

    image = photograph() if arguments.image is None else read_picture(arguments.image)
    # Before the work, refuse an output that cannot be written.
    refuse_unwritable(arguments.out)
    picture_bytes(image[:1, :1], arguments.out)
    response = tour(image)
    corners = find_corners(response)
    write_file(arguments.out, picture_bytes(mark_corners(image, corners), arguments.out))
    print(f"  {len(corners)} corners are marked in {real_path(arguments.out)}")
    return 0
