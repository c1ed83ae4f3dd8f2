"""`tirlite bench safety`: kernels of the gallery beside themselves without checks. No test asserts a time."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from tirlite.bench import gallery
from tirlite.bench.main import main
from tirlite.cli.command_error import CommandError
from tirlite.cli.kernel_file import kernels_in
from tirlite.kernels.gallery import CASES

SOURCE = """
import tirlite as tl

n = tl.dim("n")


@tl.kernel
def own(x: tl.f32[n], at: tl.i64[n], y: tl.f32[n]):
    for i in range(n):
        at[i] = i
        if i >= 2:
            y[at[i]] = x[i]
"""


def test_quick_figures(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.setattr(gallery, "CASES", [case for case in CASES if case.kernel.name in ("argmax", "spmv")])
    file = tmp_path / "own.py"
    file.write_text(SOURCE)
    assert main(["bench", "safety", str(file), "--quick", "--json"]) == 0
    figures = {each["name"]: each for each in json.loads(capsys.readouterr().out)["figures"]}
    assert list(figures)[:3] == ["argmax", "spmv", "geometric mean"]
    assert figures["argmax"]["note"].endswith("the same code")
    assert figures["accesses checked in loops"]["note"] == "3 decided, 6 proved"
    # Of 24 iterations 22 store, and each of those has one access that is checked.
    assert figures["executed accesses checked in loops, own.py"]["note"] == "22 checked, 68 proved"
    assert figures["accesses checked in loops, own.py"]["value"] == 1 / 4


def test_a_file_that_is_not_there_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="there is no file"):
        next(gallery.safety_figures([tmp_path / "none.py"]))


SHARED = os.environ.get("TIRLITE_SHARED")


@pytest.mark.skipif(SHARED is None, reason="TIRLITE_SHARED names a folder with kernels that others wrote")
def test_kernels_that_others_wrote_are_proved_or_decided() -> None:
    kernels = kernels_in(Path(SHARED or "") / "bench" / "naive.py").values()
    verdicts = Counter(each.how for kernel in kernels for each in kernel.safety)
    assert verdicts["checked"] <= 0.05 * verdicts.total()
