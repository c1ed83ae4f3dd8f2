"""The site that Sphinx makes of the pages, where the extra `docs` is installed: no warning, our directives work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

for name in ("sphinx", "myst_parser", "furo"):
    pytest.importorskip(name)


def test_the_site_is_made_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-c", "docs/site", "docs", str(tmp_path)]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert made.returncode == 0, made.stderr
    reference = (tmp_path / "api.html").read_text("utf-8")
    for name in ("tl.kernel", "tl.alloc", "tl.plan.Plan.to_html"):
        assert f'id="{name}"' in reference, name
    assert (tmp_path / "gallery.html").read_text("utf-8").count("<svg") > 20
