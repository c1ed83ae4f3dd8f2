"""`kernel.safety`: each access with how it stays in its buffer."""

from __future__ import annotations

from pathlib import Path

import pytest

import tirlite as tl
from tirlite.cli.main import main

n = tl.dim("n")

SOURCE = """
import tirlite as tl

n = tl.dim("n")


@tl.kernel
def shifted(x: tl.f32[n], k: tl.i64, y: tl.f32[n]):
    for i in range(n):
        y[i] = x[i + k]
"""


def test_a_callee_and_an_option() -> None:
    @tl.kernel
    def second(x: tl.f32[n], y: tl.f32[1]):
        y[0] = x[1]

    @tl.kernel
    def outer(x: tl.f32[n], y: tl.f32[1]):
        tl.call(second, x, y)
        y[0] += x[2]

    report = outer.safety
    assert [(each.function, each.access, each.how) for each in report] == [
        ("outer", "y[0]", "proved"),
        ("outer", "x[2]", "decided"),
        ("second", "x[1]", "checked"),
        ("second", "y[0]", "proved"),
    ]
    assert report[1].condition == "3 <= n"
    assert repr(tl.compile(outer, unchecked=True).safety) == "SafetyReport(proved=2, decided=0, checked=0, unchecked=2)"


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "shifted.py"
    file.write_text(SOURCE)
    assert main(["show", f"{file}:shifted", "--safety"]) == 0
    assert "10    x[i + k]  decided  at entry  0 <= k and k <= 0" in capsys.readouterr().out
