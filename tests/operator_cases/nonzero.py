"""Cases of the kernels of `tirlite.kernels.operators.order`."""

from __future__ import annotations

import numpy as np
from operator_cases.case import Case, integers

import tirlite as tl
from tirlite.kernels.operators.order import nonzero

n = tl.dim("n")


def all_or_none(rng: np.random.Generator) -> tuple[np.ndarray]:
    return (np.zeros((3, 2), np.float32),)


CASES = (
    Case(
        "nonzero",
        lambda: nonzero(tl.i64[n, 5], tl.i64[2, 20]),
        integers(1, 9, (4, 5)),
        lambda x: np.array(np.nonzero(x)),
    ),
    Case("nonzero-none", lambda: nonzero(tl.f32[n, 2], tl.i64[2, 0]), all_or_none, lambda x: np.array(np.nonzero(x))),
)
