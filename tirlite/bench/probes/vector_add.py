# mypy: ignore-errors
# Annotations like `tl.f32[n]` are not types to mypy.
"""Prints the seconds from the source of a vector add to its first result, in a fresh process.

The imports of NumPy, llvmlite and tirlite come first and are timed one by one; what tirlite loads later counts as
part of the result. A second kernel finds everything loaded. `first_call` counts the imports too.
"""

from __future__ import annotations

import json
from time import perf_counter


def measure() -> dict[str, dict[str, float]]:
    """Seconds of each import, from source to first result of two kernels, and of the first kernel's stages."""
    laps = [perf_counter()]
    import numpy as np

    laps.append(perf_counter())
    import llvmlite.binding  # noqa: F401

    laps.append(perf_counter())
    import tirlite as tl

    decorate = tl.kernel
    laps.append(perf_counter())
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    z = np.empty_like(x)
    start = perf_counter()

    n = tl.dim("n")

    @decorate
    def add(x: tl.f32[n], y: tl.f32[n], z: tl.f32[n]):
        for i in range(n):
            z[i] = x[i] + y[i]

    add(x, y, z)
    first = perf_counter() - start
    assert (z == x + y).all()
    start = perf_counter()

    @decorate
    def subtract(x: tl.f32[n], y: tl.f32[n], z: tl.f32[n]):
        for i in range(n):
            z[i] = x[i] - y[i]

    subtract(x, y, z)
    second = perf_counter() - start
    assert (z == x - y).all()
    imports = dict(zip(("numpy", "llvmlite", "tirlite"), np.diff(laps).tolist(), strict=True))
    return {"imports": imports, "kernels": {"first": first, "second": second}, "stages": dict(add.timing)}


if __name__ == "__main__":
    print(json.dumps(measure()))
