"""Progress is shown on terminals alone, and cleared away; Ctrl-C leaves what is done."""

from __future__ import annotations

import argparse
import io
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import sleep

import pytest

from tirlite.cli import plan, progress
from tirlite.cli.main import main
from tirlite.cli.progress import FirstFit, gathered, progress_text, showing, working
from tirlite.plan import Plan, Problem
from tirlite.plan.search.engine import Progress
from tirlite.show import status_line

STEP = Progress(nodes=34_000, seconds=1.25, total=1_100_000, bound=1_000_000)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_one_line() -> None:
    line = progress_text(STEP)
    assert line == "1.2 s, 34,000 nodes: 1,100,000 bytes, 10.00% over the bound of 1,000,000 (Ctrl-C takes it)"


def test_nothing_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    with showing(stream) as listener:
        assert listener is None
    assert stream.getvalue() == ""


def test_nothing_of_a_search_that_is_soon_over() -> None:
    stream = Terminal()
    with showing(stream) as listener:
        assert listener is not None
        listener(STEP)
    assert stream.getvalue() == ""


def test_a_long_search_shows_a_line_and_clears_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_line, "_QUIET", 0.0)
    monkeypatch.setenv("COLUMNS", "200")
    stream = Terminal()
    with showing(stream) as listener:
        assert listener is not None
        listener(STEP)
        listener(STEP)
    assert stream.getvalue() == f"\r\x1b[K{progress_text(STEP)}\r\x1b[K"


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def _python_hears() -> Iterator[None]:
    """Where the tests run in the background, the shell has the signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_python_hears")
def test_ctrl_c_leaves_the_rows_that_are_done(capsys: pytest.CaptureFixture[str]) -> None:
    def rows() -> Iterator[str]:
        yield "first"
        yield "second"
        interrupt()
        yield "third"

    assert gathered(rows(), str) == (["first", "second"], 130)
    assert capsys.readouterr().err == "interrupted: 2 done\n"
    assert gathered(iter("ab"), str) == (["a", "b"], 0)


@pytest.mark.usefixtures("_python_hears")
def test_a_row_that_took_ctrl_c_for_its_end_is_the_last() -> None:
    def rows() -> Iterator[str]:
        with suppress(KeyboardInterrupt):  # as a search that goes on with the best plan so far
            interrupt()
        yield "the best so far"
        yield "another"

    assert gathered(rows(), str) == (["the best so far"], 130)


@pytest.mark.usefixtures("_python_hears")
def test_a_terminal_shows_how_far_a_command_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_QUIET", "_EVERY"):
        monkeypatch.setattr(status_line, name, 0.0)
    monkeypatch.setattr(progress, "_TICK", 0.01)
    monkeypatch.setenv("COLUMNS", "60")
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)

    def slow() -> Iterator[str]:
        yield "one"
        while "one" not in stream.getvalue():
            sleep(0.01)
        yield "t" * 100

    gathered(slow(), str)
    assert re.search(r"\d+ s: 1 done, the last: one \(Ctrl-C shows them\)", stream.getvalue())
    assert max(map(len, stream.getvalue().split("\r\x1b[K"))) < 60
    assert stream.getvalue().endswith("\r\x1b[K")
    with pytest.raises(KeyboardInterrupt), working("compiling model.onnx"):
        interrupt()
    assert re.search(r"interrupted: compiling model\.onnx, \d\.\d s\n$", stream.getvalue())


@pytest.mark.usefixtures("_python_hears")
def test_a_folder_is_planned_up_to_ctrl_c(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        (tmp_path / f"{name}.csv").write_text("id,lower,upper,size\nx,0,2,4\n", "utf-8")
    solved = plan._of_table

    def stopped(arguments: argparse.Namespace, fitting: FirstFit) -> tuple[Problem, Plan]:
        if arguments.file.stem == "b":
            with suppress(KeyboardInterrupt):
                interrupt()
        return solved(arguments, fitting)

    monkeypatch.setattr(plan, "_of_table", stopped)
    assert main(["plan", str(tmp_path)]) == 130
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["table", "a.csv", "b.csv"]
    assert main(["plan", str(tmp_path / "b.csv")]) == 130
    assert "4 bytes" in capsys.readouterr().out
