"""The command line of a checkout: the package's commands and those that measure it."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.bench import command, onnx_coverage
from tirlite.cli import main as program


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command, and returns the exit code."""
    return program.main(argv, (command, onnx_coverage))
