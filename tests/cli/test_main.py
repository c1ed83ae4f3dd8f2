"""The program itself: help, exit codes, what it loads."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import TextIO

import pytest

from tirlite.__main__ import _program
from tirlite.bench.main import main

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


@pytest.mark.parametrize("arguments", [["show", "{}.py:f"], ["demo", "{}"], ["bench", "plans", "--instances", "{}"]])
def test_names_of_files_that_are_too_long_are_told(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    name = "x" * 300
    assert main([argument.format(name) for argument in arguments]) == 2
    assert f"error[long-file-name]: no file can be called `{name}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["parallel", "--workers", "0"], ["parallel", "--workers", "two"], ["plans", "--time-limit", "-1"]],
)
def test_numbers_out_of_their_range_are_refused(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(["bench", *arguments]) == 2
    assert f"`{arguments[-1]}` is not a" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["bench"], ["bench", "compile", "--json"], ["onnx-coverage", "--only", "x"]])
def test_what_measures_is_not_installed_and_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith("tirlite.bench")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tirlite.bench", None)
    assert _program()(arguments) == 2
    shown = capsys.readouterr().err
    assert "error[in-checkout]" in shown
    assert f"call `python -m tirlite {arguments[0]}` in a checkout" in shown


def test_help_loads_nothing_that_can_wait() -> None:
    program = "import sys; from tirlite.bench.main import main; main(['--help']); print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(shown.stdout.split())
    assert "tirlite.cli.show" in loaded
    assert {"numpy", "llvmlite", "sympy", "tirlite.driver", "tirlite.ir"} & loaded == set()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize(
    ("command", "buffered"), [("explain bad-step", True), ("explain bad-step", False), ("-h", True)]
)
def test_a_full_disk_behind_the_output_is_an_error(
    command: str, buffered: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with full_disk(buffered=buffered) as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(command.split()) == 2
    assert capsys.readouterr().err == "error[cannot-write]: cannot write `standard output`: No space left on device\n"


def full_disk(*, buffered: bool) -> TextIO:
    raw = io.FileIO("/dev/full", "w")
    return io.TextIOWrapper(io.BufferedWriter(raw) if buffered else raw, "utf-8", write_through=not buffered)


def test_a_pipe_that_nobody_reads_any_more_is_no_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", encoding="utf-8") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert main(["explain", "bad-step"]) == 0
    assert capsys.readouterr().err == ""


def test_letters_that_the_output_lacks_are_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "café.csv"
    table.write_text("id,lower,upper,size\nü,0,2,4\n", "utf-8")
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "ascii"))
    assert main(["plan", str(table)]) == 0
    assert rb"caf\xe9.csv: 1 buffer" in written.getvalue()


@pytest.mark.parametrize(("stream", "command", "code"), [("stdout", "bad-step", 0), ("stderr", "bad-stepp", 2)])
def test_a_stream_may_be_missing(
    stream: str, command: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, stream, None)
    assert main(["explain", command]) == code
    assert capsys.readouterr() == ("", "")
