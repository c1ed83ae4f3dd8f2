"""`tirlite onnx-coverage` without a case to run; with cases, see `test_run`."""

from __future__ import annotations

import sys

import pytest

from tirlite.bench import onnx_cases
from tirlite.bench.main import main


def test_a_name_that_no_case_has_is_told_with_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(onnx_cases, "outcomes", lambda *_, **__: iter(()))
    assert main(["onnx-coverage", "--only", "sofmax"]) == 2
    assert capsys.readouterr() == ("", "onnx-coverage: no case has `sofmax` in its name\n")


def test_without_the_package_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [each for each in sys.modules if each.partition(".")[0] == "onnx"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert main(["onnx-coverage"]) == 1
    assert "error[onnx-not-installed]: reading `the cases of the package onnx` takes" in capsys.readouterr().err
