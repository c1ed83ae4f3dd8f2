"""Kernels and planners spread by dask over processes, one of which is killed meanwhile. Needs the extra `dask`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("dask.array")
pytest.importorskip("distributed")

ROOT = Path(__file__).resolve().parents[2]
KILL = """
        import os, signal, time
        total = client.compute(x.map_blocks(smooth, dtype="f4").sum())
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        import numpy as np
        assert np.isclose(total.result(), smooth(x.compute()).sum(), rtol=1e-4)
"""


def test_the_page_runs_and_a_killed_worker_changes_nothing(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "cluster.md").read_text("utf-8")
    program = tmp_path / "cluster.py"
    program.write_text(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1] + KILL, "utf-8")
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TIRLITE_NUM_THREADS": "1"}
    ran = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == "[64, 128, 192, 256, 320, 384, 448, 512]"
