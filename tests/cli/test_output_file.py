"""Files are written whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tirlite.cli.command_error import CommandError
from tirlite.cli.output_file import real_path, refuse_unwritable, write_file


def test_a_file_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "out.pgm"
    path.write_bytes(b"old")
    write_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_the_old_file_stays_where_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.pgm"
    path.write_bytes(b"old")

    def disk_is_full(self: Path, contents: bytes) -> int:
        with self.open("wb") as file:
            file.write(contents[:1])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", disk_is_full)
    with pytest.raises(CommandError, match="No space left on device"):
        write_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot write `.*out.pgm`: No such file or directory"):
        write_file(tmp_path / "nowhere" / "out.pgm", b"new")


def test_what_cannot_be_written_is_refused_beforehand(tmp_path: Path) -> None:
    refuse_unwritable(tmp_path / "out.pgm")
    with pytest.raises(CommandError, match="that is a folder"):
        refuse_unwritable(tmp_path)
    with pytest.raises(CommandError, match="there is no folder"):
        refuse_unwritable(tmp_path / "nowhere" / "out.pgm")
    with pytest.raises(CommandError, match="standard output is `/dev/stdout`"):
        refuse_unwritable(Path("-"))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_ours_is_refused_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    with pytest.raises(CommandError, match="there is no permission to write to"):
        refuse_unwritable(tmp_path / "out.pgm")


def test_a_device_or_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_file(pipe, b"new")
    assert os.read(reader, 10) == b"new"
    os.close(reader)
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_link_stays_a_link_and_permissions_stay(tmp_path: Path) -> None:
    path, link = tmp_path / "out.pgm", tmp_path / "link.pgm"
    path.write_bytes(b"old")
    path.chmod(0o600)
    link.symlink_to(path)
    write_file(link, b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_names_that_no_file_can_have_are_refused_beforehand(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="File name too long"):
        refuse_unwritable(tmp_path / ("x" * 300))
    (tmp_path / "link").symlink_to(tmp_path / "nowhere" / "out.pgm")
    with pytest.raises(CommandError, match="there is no folder `.*nowhere`"):
        refuse_unwritable(tmp_path / "link")


def test_a_link_in_a_circle_is_replaced(tmp_path: Path) -> None:
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    assert real_path(circle) == circle
    write_file(circle, b"new")
    assert circle.read_bytes() == b"new"
