"""Cases of the kernels of `tirlite.kernels.operators.order`."""

from __future__ import annotations

import numpy as np
from operator_cases.case import Case, integers

import tirlite as tl
from tirlite.kernels.operators.order import sort_rows

n = tl.dim("n")


def reference(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.lexsort(x.T[::-1])
    return order, np.concatenate([[True], (x[order][1:] != x[order][:-1]).any(1)])


CASES = (
    Case(
        "sort_rows",
        lambda: sort_rows(tl.i32[n, 2], tl.i64[n], tl.bool_[n]),
        integers(-2, 3, (37, 2), dtype=np.int32),
        reference,
    ),
    Case(
        "sort_rows-one",
        lambda: sort_rows(tl.u8[1, 3], tl.i64[1], tl.bool_[1]),
        integers(0, 9, (1, 3), dtype=np.uint8),
        reference,
    ),
)
