"""`tirlite demo`: the tour, in order, and its picture."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tirlite.cli.main import main
from tirlite.cli.tour import picture_bytes, read_picture

ROOT = Path(__file__).resolve().parent.parent.parent
PARTS = (
    "tirlite: the corners in a picture of",
    "The kernel",
    "@tl.kernel",
    "The loop nest after the rewrite",
    "xx = tl.view(gray, tl.f32[n, m], fresh=True)",
    "The storage plan",
    "before       44*m*n bytes in 11 allocations",
    "after        16*m*n bytes in 4 allocations",
    "lower bound  16*m*n bytes",
    "gap          0 %",
    "overwrites its source in place",
    "Which bytes hold what, over time",
    "A gray",
    "The check against NumPy",
    "bit for bit",
    "The time",
    "times as fast",
    "The picture",
)


def squares(path: Path) -> Path:
    """A picture of a bright rectangle, which has four corners."""
    image = np.zeros((40, 60), np.uint8)
    image[10:30, 15:45] = 200
    path.write_bytes(picture_bytes(image, path))
    return path


def test_the_tour_is_told_in_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "marked.pgm"
    assert main(["demo", str(squares(tmp_path / "in.pgm")), "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    places = [shown.index(part) for part in PARTS]
    assert places == sorted(places)
    assert f"4 corners are marked in {out}" in shown
    assert max(map(len, shown.splitlines())) <= 120 + len(str(ROOT))
    assert read_picture(out).shape == (40, 60)


def test_an_unknown_format_is_refused_before_the_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = squares(tmp_path / "in.npy")
    assert main(["demo", str(picture), "--out", str(tmp_path / "marked.zzz")]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(("error[unknown-format]", "error[needs-pillow]"))


def test_a_misspelt_picture_is_answered_with_the_nearest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    squares(tmp_path / "squares.pgm")
    assert main(["demo", str(tmp_path / "square.pgm")]) == 2
    assert "did you mean `squares.pgm`?" in capsys.readouterr().err


def test_the_photograph_in_an_empty_folder(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "tirlite", "demo"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    shown = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert shown.stderr == ""
    assert "the corners in a picture of 512 x 512 pixels" in shown.stdout
    assert "all 262,144 values are the same, bit for bit" in shown.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["corners.pgm"]
