"""The environment is read in one file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tirlite.show.environment import cache_folder

ROOT = Path(__file__).resolve().parents[2]
# They pass the environment on to the processes that they start, or read how many threads a peer is told to take.
MEASURE = {f"tirlite/bench/{name}.py" for name in ("compile", "kernels", "peers")}


def test_one_file_reads_the_environment() -> None:
    reads = re.compile(r"\bos\.(environ|getenv)\b|\bfrom os import\b.*\b(environ|getenv)\b")
    files = [file for folder in ("tirlite", "kernels") for file in (ROOT / folder).rglob("*.py")]
    readers = {file.relative_to(ROOT).as_posix() for file in files if reads.search(file.read_text("utf-8"))}
    assert readers - MEASURE == {"tirlite/show/environment.py"}


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({"HOME": "/home/a"}, "/home/a/.cache/tirlite"),
        ({"HOME": "/home/a", "XDG_CACHE_HOME": "/caches"}, "/caches/tirlite"),
        ({"HOME": "/home/a", "XDG_CACHE_HOME": "not/absolute"}, "/home/a/.cache/tirlite"),
        ({"HOME": "/home/a", "TIRLITE_CACHE": "/mine"}, "/mine"),
        ({"HOME": "/home/a", "TIRLITE_CACHE": "~/mine"}, "/home/a/mine"),
        ({"HOME": "/home/a", "TIRLITE_CACHE": "On"}, "/home/a/.cache/tirlite"),
        ({"HOME": "/home/a", "TIRLITE_CACHE": " "}, "/home/a/.cache/tirlite"),
        ({"HOME": "/home/a", "TIRLITE_CACHE": "0"}, ""),
        ({"HOME": "/home/a", "TIRLITE_CACHE": "off"}, ""),
        ({}, ""),
        ({"HOME": ""}, ""),
    ],
    ids=str,
)
def test_the_folder_of_the_cache(variables: dict[str, str], wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "TIRLITE_CACHE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache_folder() == wanted
