"""Cases of the kernels of `tirlite.kernels.operators.normalize`."""

from __future__ import annotations

import numpy as np
from operator_cases.case import Case, normal

import tirlite as tl
from tirlite.ir import DType
from tirlite.kernels.operators.normalize import log_softmax, softmax

n, m = tl.dims("n m")


def case(name: str, shape: tuple, axis: int, *, logarithm: bool = False, dtype: DType = tl.f32, **sizes: int) -> Case:
    """A case at a shape, whose dims take their sizes by name."""
    function = log_softmax if logarithm else softmax
    given = tuple(sizes[each.name] if isinstance(each, tl.ir.Var) else each for each in shape)

    def reference(x: np.ndarray) -> np.ndarray:
        wide = x.astype(np.float64)
        shifted = wide - wide.max(axis=axis, keepdims=True)
        total = np.exp(shifted).sum(axis=axis, keepdims=True)
        return (shifted - np.log(total) if logarithm else np.exp(shifted) / total).astype(x.dtype)

    return Case(
        f"{function.__name__}-{name}",
        lambda: function(dtype[shape], dtype[shape], axis=axis),
        normal(given, dtype=dtype.numpy.type, scale=10.0),
        reference,
        {tl.f16: 1e-3, tl.f32: 1e-6, tl.f64: 1e-14}[dtype],
    )


CASES = tuple(
    made
    for logarithm in (False, True)
    for made in (
        case("rows", (3, 70), -1, logarithm=logarithm),
        case("symbolic", (n, 2, m), 2, logarithm=logarithm, n=3, m=65),
        case("columns", (2, 5, 70), 1, logarithm=logarithm),
        case("first axis", (n, m), 0, logarithm=logarithm, n=4, m=3),
        case("f16", (3, 9), 1, logarithm=logarithm, dtype=tl.f16),
        case("f64", (2, 3, 4), 1, logarithm=logarithm, dtype=tl.f64),
    )
)
