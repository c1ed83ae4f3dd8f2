"""The same function gives the same plan, the same text and the same object code in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from random_cases import IS_THOROUGH, groups

PRELUDE = """
import hashlib
import sys
import numpy as np
import tirlite as tl
from tirlite.codegen import compile_module

n, m = tl.dims("n m")
made = []

def digest(told):
    return hashlib.sha256(told).hexdigest()[:16]

def tell(kernel, **options):
    kernel = tl.compile(kernel.ir, **options)
    lowered = kernel._version.lowered
    told = [str(kernel.ir), str(kernel.lowered), lowered.text]
    if options.get("strategy") != "per_shape":
        told.append(str(kernel.plan))
    print(*(digest(each.encode()) for each in told))
    if "object code" in sys.argv:
        made.append(digest(b"".join(compile_module(lowered).objects)))
"""
PROGRAMS = {
    "loops": """
@tl.kernel
def smooth(x: tl.f32[n, m], y: tl.f32[n, m]):
    a = tl.alloc(tl.f32[n, m])
    b = tl.alloc(tl.f64[n, m])
    c = tl.alloc(tl.f32[m, m])
    for i in range(n):
        for j in range(m):
            a[i, j] = tl.exp(x[i, j])
            c[j, j] = x[i, j]
    for i in range(n):
        for j in range(m):
            b[i, j] = a[i, j] // 3 + c[j, j]
            assert b[i, j] < 1000, "large"
    for i in range(n):
        for j in range(m):
            y[i, j] = tl.f32(b[i, j])

for strategy in ("share", "pack", "auto", "exact"):
    tell(smooth, strategy=strategy)
tell(smooth, debug=True)
""",
    "plans by shape": """
@tl.kernel
def chain(x: tl.f32[n, m], y: tl.f32[n, m]):
    a = tl.alloc(tl.f32[n, m])
    b = tl.alloc(tl.f32[m, m])
    c = tl.alloc(tl.f32[n, n])
    for i in range(n):
        for j in range(m):
            a[i, j] = x[i, j]
            b[j, j] = x[i, j]
    for i in range(n):
        for j in range(m):
            c[i, i] = a[i, m - 1 - j] + b[j, j]
    for i in range(n):
        for j in range(m):
            y[i, j] = c[i, i]

tell(chain, strategy="per_shape")
print([str(tl.compile(chain.ir, strategy="per_shape").plan_at(n=k, m=9 - k)) for k in (1, 4, 8)])
""",
    "threads and parallel loops": """
@tl.kernel
def blocks(x: tl.f32[n, m], y: tl.f32[n, m]):
    for b in tl.thread("blockIdx.x", n):
        one = tl.alloc(tl.f32[8], scope="shared")
        two = tl.alloc(tl.f32[8], scope="shared")
        for t in tl.thread("threadIdx.x", 8):
            own = tl.alloc(tl.f32[2], scope="local")
            own[0] = x[b, t]
            one[t] = x[b, t]
            tl.barrier("shared")
            two[t] = one[7 - t] + own[0]
            tl.barrier("shared")
            y[b, t] = two[7 - t]
    for i in tl.parallel(n):
        row = tl.alloc(tl.f32[m])
        rest = tl.alloc(tl.f32[m])
        for j in range(m):
            row[j] = x[i, j]
        for j in range(m):
            rest[j] = row[m - 1 - j]
        for j in range(m):
            y[i, j] = y[i, j] + rest[j]

tell(blocks)
""",
    "calls": """
@tl.kernel
def turned(a: tl.f32[n, m], b: tl.f32[n, m]):
    t = tl.alloc(tl.f32[n, m])
    for i in range(n):
        for j in range(m):
            t[i, j] = a[i, m - 1 - j]
    for i in range(n):
        for j in range(m):
            b[i, j] = t[n - 1 - i, j]

@tl.kernel
def twice(x: tl.f32[n, m], y: tl.f32[n, m]):
    t = tl.alloc(tl.f32[n, m])
    tl.call(turned, x, t)
    tl.call(turned, t, y)

tell(twice)
""",
    "graphs": """
g = tl.graph.Builder("net")
x = g.input("x", tl.f32[n, 8])
h = g.relu(g.matmul(x, np.eye(8, dtype=np.float32)))
f = g.function(g.add(g.exp(h), g.reshape(g.tanh(g.reshape(h, [-1])), [-1, 8])))
print(tl.graph.plan_memory(f))
print(tl.plan.solve(tl.graph.memory_problem(f, views=True, in_place=True), "pack"))
print(tl.graph.lower(f).func)
""",
}
# Stands before the name of each program where one process tells of all.
MARK = "=== "
OBJECT_CODE = "object code"
SEEDS = range(6 if IS_THOROUGH else 4)
# LLVM, which does not know of Python's hashes, makes object code of the same text in some of the processes.
COMPILED = groups(len(SEEDS))


def told(file: Path, seed: int) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    command = [sys.executable, str(file), *([OBJECT_CODE] if seed in COMPILED else [])]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def test_nothing_depends_on_hashes_or_addresses(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    programs = {**PROGRAMS, OBJECT_CODE: "print(*made)\n"}
    file.write_text(PRELUDE + "".join(f"print({f'{MARK}{name}'!r})\n{text}" for name, text in programs.items()))
    answers: dict[str, set[str]] = {name: set() for name in programs}
    for pair in (SEEDS[at : at + 2] for at in range(0, len(SEEDS), 2)):
        for seed, process in [(seed, told(file, seed)) for seed in pair]:
            for answer in process.communicate()[0].split(MARK)[1:]:
                name, _, text = answer.partition("\n")
                if name != OBJECT_CODE or seed in COMPILED:
                    answers[name].add(text)
            assert process.returncode == 0
    assert {name: len(found) for name, found in answers.items()} == dict.fromkeys(programs, 1)
    assert all(len(answer.split()) >= 4 for found in answers.values() for answer in found)
