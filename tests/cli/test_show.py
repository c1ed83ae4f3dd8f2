"""`tirlite show`: a kernel out of a file, at each stage of its way."""

from __future__ import annotations

from pathlib import Path

import pytest

import tirlite as tl
from tirlite.cli.main import main
from tirlite.rewrite.options import Options
from tirlite.rewrite.pipelines import pipeline
from tirlite.schedules.auto import auto

SMOOTH = """\
import tirlite as tl

n = tl.dim("n")


@tl.kernel
def smooth(x: tl.f32[n], y: tl.f32[n]):
    doubled = tl.alloc(tl.f32[n])
    halved = tl.alloc(tl.f32[n])
    again = tl.alloc(tl.f32[n])
    for i in range(n):
        doubled[i] = x[i] * 2
    for i in range(n):
        halved[i] = doubled[i] / 2
    for i in range(n):
        again[i] = halved[i] * 2
    for i in range(n):
        y[i] = again[i]
"""
SECOND = """

@tl.kernel
def copy(x: tl.f32[n], y: tl.f32[n]):
    for i in range(n):
        y[i] = x[i]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with two files of kernels in it."""
    (tmp_path / "smoothing.py").write_text(SMOOTH)
    (tmp_path / "two.py").write_text(SMOOTH + SECOND)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_as_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "smoothing.py:smooth"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith('n = tl.dim("n")')
    assert "again = tl.alloc(tl.f32[n])" in shown
    assert tl.parse(shown).name == "smooth"


def test_the_name_may_be_left_out_where_there_is_one_kernel(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["show", "smoothing.py:smooth"])
    named = capsys.readouterr().out
    assert main(["show", "smoothing.py"]) == 0
    assert capsys.readouterr().out == named


def test_after_a_pass(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "smoothing.py:smooth", "--after", "storage-rewrite"]) == 0
    rewritten = capsys.readouterr().out
    assert "again = tl.view(doubled, tl.f32[n], fresh=True)" in rewritten
    assert main(["show", "smoothing.py:smooth", "--after", "normalize"]) == 0
    assert "tl.view" not in capsys.readouterr().out


def test_strategy(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "smoothing.py:smooth", "--after", "storage-rewrite", "--strategy", "none"]) == 0
    assert "tl.view" not in capsys.readouterr().out


def test_the_options_of_the_kernel_hold(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "own.py").write_text(
        SMOOTH.replace("@tl.kernel", '@tl.kernel(strategy="none", passes=[tl.passes.RemoveNoOps()])')
    )
    assert main(["show", "own.py", "--after", "storage-rewrite"]) == 0
    assert "tl.view" not in capsys.readouterr().out
    assert main(["show", "own.py", "--after", "remove-no-ops"]) == 0
    assert capsys.readouterr().out.count("for i in") == 4
    assert main(["show", "own.py", "--after", "storage-rewrite", "--strategy", "share"]) == 0
    assert "tl.view" in capsys.readouterr().out
    (folder / "compact.py").write_text(SMOOTH.replace("@tl.kernel", '@tl.kernel(schedule="compact")'))
    assert main(["show", "compact.py", "--after", "schedule-temporaries"]) == 0
    assert capsys.readouterr().out.count("for i in") == 1


def test_parts_stand_under_headings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "smoothing.py:smooth", "--sequence", "--plan"]) == 0
    shown = capsys.readouterr().out
    assert [line for line in shown.splitlines() if line.startswith("# ")] == [
        "# linear access sequence",
        "# storage plan",
    ]
    assert "write doubled" in shown
    assert "4*n bytes, lower bound 4*n, gap 0.0%" in shown
    assert "A doubled" in shown


def test_llvm_and_assembly(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "smoothing.py:smooth", "--llvm"]) == 0
    assert "define" in capsys.readouterr().out
    assert main(["show", "smoothing.py:smooth", "--asm"]) == 0
    assert ".text" in capsys.readouterr().out


def test_dump(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "smoothing.py:smooth", "--dump", "made/passes"]) == 0
    names = sorted(path.name for path in (folder / "made" / "passes").iterdir())
    passes = ["input", *(each.name for each in pipeline(Options(), auto=auto(tl.Target.host())))]
    assert names == [f"{number:02}-{name}.py" for number, name in enumerate(passes)]
    assert capsys.readouterr().out.splitlines() == [str(Path("made/passes") / name) for name in names]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["smothing.py:smooth"], "no-kernel-file", "did you mean `smoothing.py`?"),
        ([".:smooth"], "no-kernel-file", "that is a folder: give the path of a Python file in it"),
        (["nowhere/x.py:smooth"], "no-kernel-file", "there is no folder `nowhere` either"),
        (["smoothing.py:smoth"], "no-kernel-named", "did you mean `smooth`?"),
        (["smoothing.py:zzz"], "no-kernel-named", "its kernels are `smooth`"),
        (["two.py"], "which-kernel", "write `two.py:smooth`; its kernels are `smooth`, `copy`"),
        (["smoothing.py:smooth", "--after", "storage-rewrit"], "unknown-pass", "did you mean `storage-rewrite`?"),
    ],
)
def test_misspelt_names_are_answered_with_the_nearest(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: str, said: str
) -> None:
    assert main(["show", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith(f"error[{code}]: ")
    assert said in shown.err
    assert shown.out == ""


def test_unknown_strategy(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "smoothing.py:smooth", "--strategy", "shore"]) == 2
    assert "did you mean `share`?" in capsys.readouterr().err


def test_a_wrong_kernel_is_shown_where_it_is_wrong(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "wrong.py").write_text(SMOOTH.replace("x[i] * 2", "x[i] * two"))
    assert main(["show", "wrong.py:smooth"]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("error[unknown-name]: `two` is not defined")
    assert "doubled[i] = x[i] * two" in shown


@pytest.mark.parametrize(
    ("source", "line", "fault"),
    [
        ("import tirlite\nsize = 1 // 0\n", "2 | size = 1 // 0", "ZeroDivisionError: "),
        ("import tirlite\nraise SystemExit(3)\n", "2 | raise SystemExit(3)", "SystemExit: 3"),
        ("def broken(:\n", "1 | def broken(:", "SyntaxError: "),
    ],
)
def test_a_file_that_fails_is_shown_where_it_fails(
    folder: Path, capsys: pytest.CaptureFixture[str], source: str, line: str, fault: str
) -> None:
    (folder / "failing.py").write_text(source)
    assert main(["show", "failing.py:smooth"]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith(f"error[failed-file]: `failing.py` cannot be run: {fault}")
    assert line in shown


def test_a_file_imports_its_neighbours(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "sizes_of_mine.py").write_text("WIDTH = 7\n")
    source = SMOOTH.replace("\n\n", "\nfrom sizes_of_mine import WIDTH\n\n", 1).replace("* 2", "* WIDTH")
    (folder / "sub" / "kernels_of_mine.py").write_text(source)
    assert main(["show", "sub/kernels_of_mine.py:smooth"]) == 0
    assert "x[i] * tl.f32(7.0)" in capsys.readouterr().out
