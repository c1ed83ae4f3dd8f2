"""`tirlite bench safety`: kernels of the gallery beside themselves without checks. No test asserts a time."""

from __future__ import annotations

import json

import pytest

from tirlite.bench import safety
from tirlite.bench.main import main
from tirlite.kernels.gallery import CASES


def test_quick_figures(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(safety, "CASES", [case for case in CASES if case.kernel.name in ("argmax", "spmv")])
    assert main(["bench", "safety", "--quick", "--json"]) == 0
    figures = {each["name"]: each for each in json.loads(capsys.readouterr().out)["figures"]}
    assert list(figures)[:3] == ["argmax", "spmv", "geometric mean"]
    assert figures["accesses checked where they stand"]["note"] == "1 of 16"
