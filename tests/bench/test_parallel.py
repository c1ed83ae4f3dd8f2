"""`tirlite bench parallel`: kernels of the gallery on one worker and on several. No test asserts a time."""

from __future__ import annotations

import json

import pytest

from tirlite.bench import gallery
from tirlite.bench.main import main
from tirlite.kernels.gallery import CASES


def test_quick_figures_of_the_fork_and_of_kernels_with_parallel_loops(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    some = [case for case in CASES if case.kernel.name in ("smoothstep", "matmul", "histogram")]
    monkeypatch.setattr(gallery, "CASES", some)
    assert main(["bench", "parallel", "--quick", "--json", "--workers", "3"]) == 0
    figures = json.loads(capsys.readouterr().out)["figures"]
    assert [figure["name"] for figure in figures] == ["fork and join", "smoothstep", "matmul"]


def test_sizes_are_those_of_kernels_of_the_gallery() -> None:
    assert set(gallery.LARGE) <= {case.kernel.name for case in CASES}
