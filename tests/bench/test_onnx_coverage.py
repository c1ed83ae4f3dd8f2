"""`tirlite onnx-coverage` without a case to run; with cases, see `test_run`."""

from __future__ import annotations

import sys

import pytest

from tirlite.bench import onnx_cases, onnx_coverage
from tirlite.bench.main import main


def test_a_name_that_no_case_has_is_told_with_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(onnx_cases, "outcomes", lambda *_, **__: iter(()))
    assert main(["onnx-coverage", "--only", "sofmax"]) == 2
    assert capsys.readouterr() == ("", "onnx-coverage: no case has `sofmax` in its name\n")


def test_shards_share_the_cases_and_a_log_hears_how_far_they_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    everything = list(onnx_cases.outcomes(("simple",), pattern="sequence"))
    parts = [list(onnx_cases.outcomes(("simple",), pattern="sequence", shard=(k, 2))) for k in (1, 2)]
    assert parts == [everything[::2], everything[1::2]]
    assert all(parts)

    monkeypatch.setattr(onnx_coverage, "_REPORT_EVERY", 1)
    monkeypatch.setattr(onnx_cases, "outcomes", lambda *_, shard, **__: iter(parts[shard[0] - 1]))
    assert main(["onnx-coverage", "--shard", "2/2"]) == 0
    assert [line.split()[-1] for line in capsys.readouterr().err.splitlines()] == [each.name for each in parts[1]]
    assert main(["onnx-coverage", "--shard", "3/2"]) == 2
    assert "`3/2` is not K/N" in capsys.readouterr().err


def test_without_the_package_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [each for each in sys.modules if each.partition(".")[0] == "onnx"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert main(["onnx-coverage"]) == 1
    assert "error[onnx-not-installed]: reading `the cases of the package onnx` takes" in capsys.readouterr().err
