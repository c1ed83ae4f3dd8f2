"""Cases of the kernels of `tirlite.kernels.operators.reduce`."""

from __future__ import annotations

import numpy as np
from operator_cases.case import Case
from operator_cases.elementwise import kernel_of

import tirlite as tl
from tirlite.ir import DType

d0, d1, d2, d3 = tl.dims("d0 d1 d2 d3")


SIZES = (2, 3, 4, 70)


def case(op: str, axes: tuple[int, ...], *, dtype: DType = tl.f32, free: bool = False, keepdims: bool = True) -> Case:
    """A case over axes of a box of rank 4, all of whose axes are dims if it is `free`."""
    shape = (d0, d1, d2, d3) if free else SIZES
    result = tuple(1 if k in axes else e for k, e in enumerate(shape) if keepdims or k not in axes)
    function = NUMPY[op]

    def inputs(rng: np.random.Generator) -> tuple[np.ndarray]:
        if dtype.is_bool:
            return (rng.random(SIZES) < 0.99,)
        values = rng.uniform(0.9, 1.1, SIZES) if dtype.is_float else rng.integers(-3, 9, SIZES)
        return (values.astype(dtype.numpy),)

    def reference(x: np.ndarray) -> np.ndarray:
        wide = x.astype(np.float64) if dtype.is_float else x
        return np.asarray(function(wide, axis=axes, keepdims=keepdims)).astype(dtype.numpy)

    exact = not dtype.is_float or op in ("reduce_max", "reduce_min")
    name = f"{op}-{dtype}-{axes}{'-free' * free}{'-flat' * (not keepdims)}"
    tolerance = 0 if exact else {tl.f16: 1e-3, tl.f32: 2e-6, tl.f64: 1e-14}[dtype]
    types = (dtype[shape], dtype[result])
    return Case(name, lambda: kernel_of(op, *types, axes=axes, keepdims=keepdims), inputs, reference, tolerance)


NUMPY = {
    "reduce_sum": np.sum,
    "reduce_mean": np.mean,
    "reduce_prod": np.prod,
    "reduce_max": np.max,
    "reduce_min": np.min,
    "reduce_l1": lambda x, **over: np.sum(np.abs(x), **over),
    "reduce_l2": lambda x, **over: np.sqrt(np.sum(x * x, **over)),
    "reduce_sum_square": lambda x, **over: np.sum(x * x, **over),
    "reduce_log_sum": lambda x, **over: np.log(np.sum(x, **over)),
    "reduce_log_sum_exp": lambda x, **over: np.log(np.sum(np.exp(x), **over)),
    "reduce_all": np.all,
    "reduce_any": np.any,
}


OF_FLOATS = tuple(op for op in NUMPY if op not in ("reduce_all", "reduce_any"))


CASES = (
    *(case(op, (3,)) for op in OF_FLOATS),
    *(case(op, (1,)) for op in OF_FLOATS),
    *(case("reduce_sum", axes) for axes in ((), (0,), (0, 1, 2, 3), (0, 2), (1, 3), (0, 3), (2, 3))),
    *(case("reduce_mean", axes, free=True) for axes in ((2, 3), (0, 2), (1,))),
    case("reduce_log_sum_exp", (0, 2), free=True),
    case("reduce_max", (1, 2), keepdims=False),
    *(case("reduce_sum", (2, 3), dtype=dtype) for dtype in (tl.f16, tl.f64, tl.i32, tl.u8, tl.i64)),
    *(case("reduce_max", (3,), dtype=dtype) for dtype in (tl.f16, tl.i8)),
    *(case(op, axes, dtype=tl.bool_) for op in ("reduce_all", "reduce_any") for axes in ((3,), (0,))),
)
