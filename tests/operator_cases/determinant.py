"""Cases of the kernels of `tirlite.kernels.operators.matmul`."""

from __future__ import annotations

import numpy as np
from operator_cases.case import Case, normal

import tirlite as tl
from tirlite.kernels.operators.matmul import det

n = tl.dim("n")


def swapped(rng: np.random.Generator) -> tuple[np.ndarray]:
    """Matrices whose first element is 0, and one that has no inverse."""
    made = rng.standard_normal((3, 3, 3)).astype(np.float32)
    made[0, 0, 0] = 0
    made[1, 2] = made[1, 1]
    return (made,)


CASES = (
    Case("det", lambda: det(tl.f64[n, 4, 4], tl.f64[n]), normal((2, 4, 4), dtype=np.float64), np.linalg.det, 1e-12),
    Case("det-pivots", lambda: det(tl.f32[3, n, n], tl.f32[3]), swapped, np.linalg.det, 1e-5),
    Case("det-one", lambda: det(tl.f32[1, 1], tl.f32[()]), normal((1, 1)), lambda x: x[0, 0]),
)
