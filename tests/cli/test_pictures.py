"""Pictures in and out of files."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from tirlite.cli.command_error import CommandError
from tirlite.cli.tour import photograph, picture_bytes, read_picture

RAMP = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20


def test_the_photograph_is_there() -> None:
    image = photograph()
    assert (image.shape, image.dtype) == ((512, 512), np.uint8)
    assert image.std() > 50


@pytest.mark.parametrize("ending", [".pgm", ".npy", ".PGM"])
def test_written_pictures_read_back(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"ramp{ending}"
    path.write_bytes(picture_bytes(RAMP, path))
    np.testing.assert_array_equal(read_picture(path), RAMP)


def test_other_formats_go_by_pillow(tmp_path: Path) -> None:
    pytest.importorskip("PIL.Image", reason="Pillow comes with the extra `viz`")
    path = tmp_path / "ramp.png"
    path.write_bytes(picture_bytes(RAMP, path))
    np.testing.assert_array_equal(read_picture(path), RAMP)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"P2 # text\n2 # wide\n1\n255\n7 9\n", [[7, 9]]),
        (b"P5\n2 1\n# made by hand\n255\n\x07\x09", [[7, 9]]),
        (b"P5\n2 1\n127\n\x00\x7f", [[0, 255]]),
        (b"P5\n2 1\n65535\n\x00\x00\xff\xff", [[0, 255]]),
    ],
    ids=["text", "comment", "few grays", "two bytes a pixel"],
)
def test_kinds_of_pgm(tmp_path: Path, data: bytes, expected: list[list[int]]) -> None:
    path = tmp_path / "picture.pgm"
    path.write_bytes(data)
    np.testing.assert_array_equal(read_picture(path), expected)


def numpy_file(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("x.pgm", b"", "it does not begin as a PGM file does"),
        ("x.pgm", b"P6 1 1 255 abc", "it does not begin as a PGM file does"),
        ("x.pgm", b"P5 2 2 255 abc", "it ends after 3 of 2 x 2 pixels"),
        ("x.pgm", b"P5 2 2 0 abcd", "its largest value is 0"),
        ("x.pgm", b"P2 2 1 255 7 x", "invalid literal"),
        ("x.pgm", b"P5 0 2 255 ", "it has no pixels"),
        ("x.npy", b"", "No data left in file"),
        ("x.npy", numpy_file(np.zeros((2, 2))), "it does not hold an array of uint8 with two axes"),
        ("x.npy", numpy_file(np.zeros((2, 2, 3), np.uint8)), "it does not hold an array of uint8 with two axes"),
        ("x.npy", numpy_file(np.zeros((0, 2), np.uint8)), "it has no pixels"),
    ],
)
def test_what_is_no_picture_is_refused(tmp_path: Path, name: str, data: bytes, reason: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(CommandError, match=reason):
        read_picture(path)


def test_a_file_that_is_not_there_is_answered_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "lighthouse.pgm").write_bytes(b"")
    with pytest.raises(CommandError, match="did you mean `lighthouse.pgm`"):
        read_picture(tmp_path / "lighthose.pgm")
