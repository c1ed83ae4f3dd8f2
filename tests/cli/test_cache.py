"""The command that tells of the cache on disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tirlite.cli.main import main
from tirlite.runtime.cache import Folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cache"
    monkeypatch.setenv("TIRLITE_CACHE", str(path))
    return path


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["cache", *words]) == 0
    return capsys.readouterr().out


def test_it_tells_where_files_are_and_how_many_and_deletes_them(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Folder(str(folder)).write("a" * 40, bytes(300))
    assert told(capsys) == f"{folder}\n300 bytes in 1 file, of at most 1,073,741,824\n"
    assert told(capsys, "where") == f"{folder}\n"
    assert told(capsys, "clear") == "1 file deleted\n"
    assert told(capsys, "size").startswith("0 bytes in 0 files")


def test_it_says_why_a_folder_is_not_used(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder.mkdir(mode=0o755)
    assert told(capsys, "where") == f"{folder}, which is not used: its mode is 755, and has to be 700\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_it_says_that_a_folder_cannot_be_made(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tmp_path.chmod(0o500)
    assert f"which is not used: it is not there, and `{tmp_path}` cannot be written to" in told(capsys, "where")


def test_without_a_cache_nothing_is_kept(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TIRLITE_CACHE", "0")
    assert told(capsys).startswith("nothing is kept")
