"""The program itself: help, exit codes, what it loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tirlite.cli.main import main

ROOT = Path(__file__).resolve().parent.parent.parent


def test_help_names_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"    {command} " in shown for command in ("demo", "show", "bench"))


@pytest.mark.parametrize("command", ["demo", "show", "bench"])
def test_each_command_has_help(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert main([command, "--help"]) == 0
    assert f"usage: tirlite {command}" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["shou"], ["show"], ["bench"], ["bench", "weather"], ["demo", "--colour"]])
def test_a_wrong_command_line_is_told_and_has_code_2(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert "usage: tirlite" in shown.err
    assert shown.out == ""


@pytest.mark.parametrize(
    "arguments",
    [["parallel", "--workers", "0"], ["parallel", "--workers", "two"], ["plans", "--time-limit", "-1"]],
)
def test_numbers_out_of_their_range_are_refused(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(["bench", *arguments]) == 2
    assert f"`{arguments[-1]}` is not a" in capsys.readouterr().err


def test_help_loads_nothing_that_can_wait() -> None:
    program = "import sys; from tirlite.cli.main import main; main(['--help']); print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(shown.stdout.split())
    assert "tirlite.cli.show" in loaded
    assert {"numpy", "llvmlite", "sympy", "tirlite.driver", "tirlite.ir"} & loaded == set()
