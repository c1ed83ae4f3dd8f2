"""`tirlite bench compact`: `schedule="compact"` on the gallery. No test asserts a time."""

from __future__ import annotations

import json

import pytest

from tirlite.bench import gallery
from tirlite.bench.main import main


def test_quick_figures_of_kernels_with_storage(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    some = [case for case in gallery.CASES if case.kernel.name in ("smoothstep", "softmax", "harris")]
    monkeypatch.setattr(gallery, "CASES", some)
    assert main(["bench", "compact", "--quick", "--json"]) == 0
    figures = {figure["name"]: figure for figure in json.loads(capsys.readouterr().out)["figures"]}
    assert {"smoothstep", "softmax", "harris", "all of them"} == figures.keys()
    assert figures["smoothstep"]["note"].startswith("8*n bytes -> 0;")
