"""Kernels over x, y and n for tests of passes that take threads apart, and what they compute."""

from __future__ import annotations

from functools import partial

import numpy as np
from parsed import parsed

import tirlite as tl
from tirlite.interp import interpret

HEADER = 'n = tl.dim("n")\n\n@tl.kernel\ndef f(x: tl.i64[n], y: tl.i64[n]):\n'
kernel = partial(parsed, HEADER)


def outcome(func: tl.PrimFunc) -> list[int]:
    """What it leaves in y for 16 elements."""
    x, y = np.arange(1, 17), np.zeros(16, np.int64)
    interpret(func, {func.params[0]: x, func.params[1]: y, func.dims[0]: 16})
    return y.tolist()
