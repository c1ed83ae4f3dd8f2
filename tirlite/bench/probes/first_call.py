# mypy: ignore-errors
# Annotations like `tl.f32[n]` are not types to mypy.
"""Prints the seconds that tirlite adds to NumPy's import: its own import with one kernel made, the first call, both.

Also prints which of the modules that only compilation needs were loaded.
"""

from __future__ import annotations

import json
import sys
from time import perf_counter

import numpy as np

start = perf_counter()

import tirlite as tl  # noqa: E402

n = tl.dim("n")


@tl.kernel
def add(x: tl.f32[n], y: tl.f32[n], z: tl.f32[n]):
    """The kernel that is timed."""
    for i in range(n):
        z[i] = x[i] + y[i]


if __name__ == "__main__":
    made = perf_counter()
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    z = np.empty_like(x)
    before = perf_counter()
    add(x, y, z)
    end = perf_counter()
    assert (z == x + y).all()
    loaded = [name for name in ("llvmlite", "tirlite.codegen", "tirlite.rewrite.pipelines") if name in sys.modules]
    seconds = {"made": made - start, "call": end - before, "whole": made - start + end - before}
    print(json.dumps({**seconds, "loaded": loaded}))
