"""The notebooks run from top to bottom, and are kept without outputs, which would grow old."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook: Path, tmp_path: Path) -> None:
    cells = [cell for cell in json.loads(notebook.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] for cell in cells)
    program = tmp_path / f"{notebook.stem}.py"
    program.write_text("\n\n".join("".join(cell["source"]) for cell in cells), "utf-8")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ran = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
