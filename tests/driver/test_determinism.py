"""The same function gives the same text and the same object code in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import hashlib
import tirlite as tl
from tirlite.codegen import compile_module

n, m = tl.dims("n m")

@tl.kernel
def smooth(x: tl.f32[n, m], y: tl.f32[n, m]):
    a = tl.alloc(tl.f32[n, m])
    b = tl.alloc(tl.f64[n, m])
    for i in range(n):
        for j in range(m):
            a[i, j] = tl.exp(x[i, j])
    for i in range(n):
        for j in range(m):
            b[i, j] = a[i, j] // 3
            assert b[i, j] < 1000, "large"
    for i in range(n):
        for j in range(m):
            y[i, j] = tl.f32(b[i, j])

lowered = smooth._version.lowered
print(hashlib.sha256(lowered.text.encode()).hexdigest())
print(hashlib.sha256(compile_module(lowered).data).hexdigest())
"""


def digests(file: Path, seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    run = subprocess.run([sys.executable, str(file)], env=environment, check=True, capture_output=True, text=True)
    return run.stdout


def test_text_and_object_do_not_depend_on_hashes_or_addresses(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    first = digests(file, "1")
    assert len(first.split()) == 2
    assert digests(file, "2") == first
