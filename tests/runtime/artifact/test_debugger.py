"""What gdb is told of kernels when it is asked for by TIRLITE_GDB=1: their names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import numpy as np
import tirlite as tl

n = tl.dim("n")

@tl.kernel
def smooth(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for i in range(n):
        y[i] = 2 * x[i]

@tl.kernel
def rough(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for i in range(n):
        y[i] = 3 * x[i]

for kernel in (smooth, rough):
    kernel(np.ones(10, np.float32))
"""


def test_gdb_stops_at_kernels_by_their_names(tmp_path: Path) -> None:
    gdb = shutil.which("gdb")
    if gdb is None:
        pytest.skip("there is no gdb")
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    asked = [
        "set breakpoint pending on",
        "break tirlite_smooth",
        "break tirlite_rough",
        "run",
        "bt 1",
        "continue",
        "bt 1",
    ]
    commands = [part for each in asked for part in ("-ex", each)]
    environment = {**os.environ, "TIRLITE_GDB": "1"}
    command = [gdb, "-nx", "-batch", *commands, "--args", sys.executable, str(file)]
    told = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if "Operation not permitted" in told.stderr:
        pytest.skip("gdb may not look at processes here")
    lines = [line for line in told.stdout.splitlines() if line.startswith("#0")]
    assert [line.split(" in ")[1] for line in lines] == ["tirlite_smooth ()", "tirlite_rough ()"], told.stdout
