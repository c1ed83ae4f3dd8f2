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
        import os, signal, sys, threading, time
        import numpy as np

        def kill():
            client.wait_for_workers(2, timeout=60)
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

        total = client.compute(x.map_blocks(smooth, dtype="f4").sum())
        kill()
        assert np.isclose(total.result(), smooth(x.compute()).sum(), rtol=1e-4)

        rows = [[tl.plan.Request(str(i), 64 + i * k % 99, (i, i + 5)) for i in range(400)] for k in range(1, 9)]
        many = [tl.plan.Problem(each) for each in rows]
        totals = client.map(bytes_of, many)
        kill()
        assert client.gather(totals) == [bytes_of(each) for each in many]

        def spread_and_kill(function, shares):
            print("shares of", [len(share.candidates) for share in shares], file=sys.stderr)
            found = client.map(function, shares, pure=False)
            kill()
            return client.gather(found)

        block = x[:500].compute()
        space = ["auto", None, *(lambda s, by=by: s.split("i", by) for by in (2, 3, 4, 5, 6, 7, 8))]
        tuned = tl.autotune(smooth, block, seconds=60, rounds=2, space=space, map=spread_and_kill)
        assert [trial.seconds is not None for trial in tuned.trials] == [True] * 9, tuned.report
        assert np.array_equal(tl.compile(smooth, schedule=tuned)(block), smooth(block))
"""


def test_the_page_runs_and_a_killed_worker_changes_nothing(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "cluster.md").read_text("utf-8")
    program = tmp_path / "cluster.py"
    program.write_text(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1] + KILL, "utf-8")
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TIRLITE_NUM_THREADS": "1"}
    ran = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    told = ran.stdout.splitlines()
    assert told[1] == "[64, 128, 192, 256, 320, 384, 448, 512]"
    assert told[2].split() == ["ms", "schedule"]
    assert "shares of [5, 5]" in ran.stderr
