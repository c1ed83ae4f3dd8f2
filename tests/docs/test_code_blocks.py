"""Every code block of README and docs runs, and what it prints stands below it.

The blocks of one page run in order in a folder of their own. Python blocks share their names; one that begins with
`# NAME.py` is also that file, for the blocks after it. Shell blocks hold commands that begin with `python -m`. A block
of text or output is what the block before it prints; `...` there stands for anything. A block below a remark
`<!-- not run: REASON -->` is left alone.
"""

from __future__ import annotations

import io
import linecache
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from doctest import ELLIPSIS, Example, OutputChecker
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: \S.* -->\n\Z")
FILE_NAME = re.compile(r"# (\w+\.py)\n")
PRINTED = {"text", "output"}


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: its language, its text, the line of the page that it begins at, and what it is to print."""

    language: str
    text: str
    line: int
    expected: str = ""


def blocks(page: str) -> list[Block]:
    """The blocks of a page that are to run, each with the output that follows it."""
    found: list[Block] = []
    after_run = False
    for fence in FENCE.finditer(page):
        language, text = fence.groups()
        line = page.count("\n", 0, fence.start()) + 2
        if language in PRINTED:
            assert after_run, f"line {line}: whose output is this?"
            found[-1] = replace(found[-1], expected=text)
            after_run = False
            continue
        after_run = NOT_RUN.search(page, 0, fence.start()) is None
        if after_run:
            assert language in ("python", "sh"), f"line {line}: what language is this?"
            found.append(Block(language, text, line))
    return found


def run_python(block: Block, names: dict[str, object]) -> str:
    """What a block prints. Its source is in a file, so that kernels find it; one that names its file stands alone."""
    named = FILE_NAME.match(block.text)
    file = Path(named[1] if named else f"line_{block.line}.py")
    file.write_text(block.text, "utf-8")
    printed = io.StringIO()
    own: dict[str, object] = {"__name__": "__main__"} if named else names
    with redirect_stdout(printed):
        exec(compile(block.text, str(file), "exec", dont_inherit=True), own)
    names |= own
    return printed.getvalue()


def run_shell(block: Block) -> str:
    """What the commands of a block print, on both streams. The last one may fail, as a test that is shown failing."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    printed = ""
    for line in block.text.splitlines():
        program, *arguments = shlex.split(line)
        assert [program, arguments[0]] == ["python", "-m"], f"{line}: mark it as not run, or begin with `python -m`"
        done = subprocess.run(
            [sys.executable, *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        printed += done.stdout
        assert done.returncode == 0 or block.expected, f"{line}\n{done.stdout}"
    return printed


def assert_prints(block: Block, printed: str) -> None:
    """Compares line by line; blanks at the ends of lines and empty lines at the end do not count."""
    got, want = (
        "".join(f"{line.rstrip()}\n" for line in text.rstrip().splitlines()) for text in (printed, block.expected)
    )
    if block.language == "sh" and not want:
        return
    checker = OutputChecker()
    if not checker.check_output(want, got, ELLIPSIS):
        difference = checker.output_difference(Example(block.text, want), got, ELLIPSIS)
        raise AssertionError(f"the block at line {block.line} prints something else\n{difference}")


def run_page(page: str) -> None:
    """Runs the blocks of a page in the current folder."""
    names: dict[str, object] = {"__name__": "__main__"}
    linecache.clearcache()
    for block in blocks(page):
        assert_prints(block, run_python(block, names) if block.language == "python" else run_shell(block))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to run in, whose modules can be imported and are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_blocks_run_and_print_what_is_below_them(page: Path, folder: Path) -> None:
    run_page(page.read_text("utf-8"))


def test_a_wrong_output_is_found(folder: Path) -> None:
    with pytest.raises(AssertionError, match="the block at line 2"):
        run_page("```python\nprint(1)\n```\n```text\n2\n```\n")


def test_an_output_that_is_not_shown_is_found(folder: Path) -> None:
    with pytest.raises(AssertionError, match="Got"):
        run_page("```python\nprint(1)\n```\n")


def test_names_and_files_reach_the_blocks_below(folder: Path) -> None:
    run_page("```python\n# one.py\nx = 1\n```\n```python\nimport one\nprint(one.x, x)\n```\n\n```text\n1 ...\n```\n")


def test_a_file_that_needs_names_of_the_session_is_found(folder: Path) -> None:
    with pytest.raises(NameError):
        run_page("```python\nx = 1\n```\n```python\n# one.py\nprint(x)\n```\n\n```text\n1\n```\n")


def test_a_command_that_fails_is_found(folder: Path) -> None:
    with pytest.raises(AssertionError, match="there is no file"):
        run_page("```sh\npython -m tirlite show missing.py\n```\n")


def test_blocks_are_left_alone_for_a_reason_only(folder: Path) -> None:
    run_page("<!-- not run: it fails -->\n```python\n1 / 0\n```\n")
    with pytest.raises(ZeroDivisionError):
        run_page("<!-- not run: -->\n```python\n1 / 0\n```\n")


def test_an_output_of_nothing_is_found() -> None:
    with pytest.raises(AssertionError, match="line 2: whose output"):
        blocks("```text\n1\n```\n")
