"""Prints how long a program of extreme length or depth takes from the IR to its result, or how it was refused."""

from __future__ import annotations

import json
import sys
from time import perf_counter

import numpy as np

from tirlite import driver
from tirlite.bench.programs import EXTREMES
from tirlite.diag import TirliteError


def measure(program: str, size: int) -> dict[str, float | str]:
    """`seconds`, and where it was refused `refused`, the message's first line; where LLVM was held back, a `note`."""
    func = EXTREMES[program](size)
    x = np.ones(1, np.float32)
    y = np.zeros(1, np.float32)
    start = perf_counter()
    try:
        kernel = driver.compile(func)
        kernel(x, y)
    except TirliteError as error:
        return {"seconds": perf_counter() - start, "refused": str(error).partition("\n")[0]}
    return {"seconds": perf_counter() - start, "note": kernel.timing.note}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
