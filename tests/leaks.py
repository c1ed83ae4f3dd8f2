"""What a compilation leaves behind in the process: `PYTHONPATH=tests:. python -m leaks` prints it."""

from __future__ import annotations

import argparse
import gc
from pathlib import Path

import numpy as np

import tirlite as tl

n = tl.dim("n")


@tl.kernel
def doubled(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for i in range(n):
        y[i] = 2 * x[i]


def resident_bytes() -> int:
    gc.collect()
    return 4096 * int(Path("/proc/self/statm").read_text("ascii").split()[1])


def compile_and_drop(count: int) -> None:
    for _ in range(count):
        tl.compile(doubled)(np.ones(8, np.float32))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=300)
    count = parser.parse_args().kernels
    compile_and_drop(30)  # what the first ones load, stays
    before = resident_bytes()
    compile_and_drop(count)
    left = (resident_bytes() - before) / count / 1024
    print(f"{count} kernels compiled and dropped: {left:.0f} KiB left behind by each")


if __name__ == "__main__":
    main()
