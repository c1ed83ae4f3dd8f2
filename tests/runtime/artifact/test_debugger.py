"""What gdb is told of kernels when it is asked for by TIRLITE_GDB=1: their names and lines."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tirlite as tl
from tirlite.runtime.artifact.line_table import Stretch, stretches_of, written_table

n = tl.dim("n")

PROGRAM = """
import numpy as np
import tirlite as tl

n = tl.dim("n")

@tl.kernel(target=tl.Target.host(workers=2))
def smooth(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for i in range(n):
        y[i] = 2 * x[i]

@tl.kernel(target=tl.Target.host(workers=1))
def rough(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for i in range(n):
        y[i] = 3 * x[i]

for kernel in (smooth, rough):
    kernel(np.ones(10, np.float32))
"""


def test_gdb_stops_at_kernels_by_their_names_and_lines(tmp_path: Path) -> None:
    gdb = shutil.which("gdb")
    if gdb is None:
        pytest.skip("there is no gdb")
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    asked = [
        "set breakpoint pending on",
        "break tirlite_smooth",
        "break program.py:15",
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
    lines = [line.split()[1:] for line in told.stdout.splitlines() if line.startswith("#0")]
    found = [(words[-4], words[-1]) for words in lines]
    # Where a function begins is a matter of the debugger: at its head or behind what it takes for that.
    assert found[0] in [("tirlite_smooth", f"{file}:{line}") for line in (8, 9)], told.stdout
    assert found[1:] == [("tirlite_rough", f"{file}:15")], told.stdout


def image_of(kernel: tl.Kernel) -> object:
    return kernel._version.executable._artifact.code


def test_code_tells_the_lines_of_all_files_that_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    @tl.kernel
    def f(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        t = tl.alloc(tl.f32[n])
        for i in tl.parallel(n):
            t[i] = tl.exp(x[i])
        for i in range(1, n):
            y[i] = t[i - 1] + t[i]
        y[0] = 0

    x = np.linspace(-2, 2, 77, dtype=np.float32)
    wanted = f(x)
    assert image_of(f).lines == ()
    monkeypatch.setenv("TIRLITE_PERF", "lines")
    for debug in (False, True):
        again = tl.compile(f, debug=debug)
        np.testing.assert_array_equal(again(x).view(np.int32), wanted.view(np.int32))
        image = image_of(again)
        first = f.ir.span.line
        assert {each.file for each in image.lines} == {__file__}
        stores = {first + number for number in (3, 5, 6)}
        assert stores <= {each.line for each in image.lines} <= set(range(first, first + 7))
        assert all(0 <= each.start < each.end <= len(image.code) for each in image.lines)
        ends = [each.end for each in image.lines]
        assert all(end <= each.start for end, each in zip(ends, image.lines[1:], strict=False))


def test_a_table_of_lines_is_read_as_it_was_written() -> None:
    told = (
        Stretch(0, 300, "/a/b.py", 7),
        Stretch(300, 301, "/a/ü.py", 100_000),
        Stretch(400, 70_000, "/a/b.py", 1),
        Stretch(70_000, 70_004, "/a/b.py", 2),
    )
    table = written_table(told, 0)
    places = {}
    for at in range(len(table) - 10):
        if table[at : at + 3] == b"\0\x09\x02":
            places[at + 3] = int.from_bytes(table[at + 3 : at + 11], "little")
    assert stretches_of(table, places, ()) == told
    assert stretches_of(b"", {}, ()) == ()
    with pytest.raises(ValueError, match="version 5"):
        stretches_of(table[:4] + b"\5" + table[5:], {}, ())
