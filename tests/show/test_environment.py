"""The environment is read in one file."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# They pass the environment on to the processes that they start.
START_PROCESSES = {"tirlite/bench/compile.py", "tirlite/bench/kernels.py"}


def test_one_file_reads_the_environment() -> None:
    reads = re.compile(r"\bos\.(environ|getenv)\b|\bfrom os import\b.*\b(environ|getenv)\b")
    files = [file for folder in ("tirlite", "kernels") for file in (ROOT / folder).rglob("*.py")]
    readers = {file.relative_to(ROOT).as_posix() for file in files if reads.search(file.read_text("utf-8"))}
    assert readers - START_PROCESSES == {"tirlite/show/environment.py"}
