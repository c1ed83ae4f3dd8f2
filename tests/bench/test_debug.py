"""`tirlite bench debug`: each kernel of the gallery with and without checks. No test asserts a time."""

from __future__ import annotations

import json

import pytest

from tirlite.bench import gallery
from tirlite.bench.main import main
from tirlite.kernels.gallery import CASES


def test_quick_figures_of_kernels(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gallery, "CASES", CASES[:3])
    assert main(["bench", "debug", "--quick", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)["figures"]
    assert [figure["name"] for figure in figures] == [case.kernel.name for case in CASES[:3]]
    assert all(figure["value"] > 0 for figure in figures)


def test_each_kernel_has_a_size_to_be_measured_at() -> None:
    assert list(gallery.SMALL) == [case.kernel.name for case in CASES]
