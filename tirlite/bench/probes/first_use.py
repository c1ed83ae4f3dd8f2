# mypy: ignore-errors
# Annotations like `tl.f32[n]` are not types to mypy.
"""Prints the seconds that it takes, beyond NumPy, to import tirlite and to make a kernel of a function."""

from __future__ import annotations

from time import perf_counter

import numpy  # noqa: F401

start = perf_counter()

import tirlite as tl  # noqa: E402

n = tl.dim("n")


@tl.kernel
def add(x: tl.f32[n], y: tl.f32[n], z: tl.f32[n]):
    """What is measured: this is read, translated and validated, and not compiled."""
    for i in range(n):
        z[i] = x[i] + y[i]


if __name__ == "__main__":
    print(perf_counter() - start)
