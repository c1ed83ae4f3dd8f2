"""Cases of the kernels of `tirlite.kernels.operators.matmul`."""

from __future__ import annotations

import numpy as np
from operator_cases.case import Case, integers, normal

import tirlite as tl
from tirlite.ir import DType
from tirlite.kernels.operators.matmul import gemm, matmul

n, m, k = tl.dims("n m k")


def case(
    left: tuple, right: tuple, result: tuple, *, dtype: DType = tl.f32, name: str = "", turned: str = "", **sizes: int
) -> Case:
    """A case of `matmul` at shapes, in which dims take their sizes by name; those of `turned` are transposes."""
    attrs = {f"trans_{side}": side in turned for side in "ab"}

    def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.matmul(a.swapaxes(-1, -2) if "a" in turned else a, b.swapaxes(-1, -2) if "b" in turned else b)

    shapes = [tuple(sizes[each.name] if isinstance(each, tl.ir.Var) else each for each in s) for s in (left, right)]
    tolerance = {tl.f16: 2e-3, tl.f32: 1e-5, tl.f64: 1e-13}.get(dtype, 0)
    values = normal(*shapes, dtype=dtype.numpy.type) if dtype.is_float else integers(-9, 9, *shapes, dtype=dtype.numpy)
    make = lambda: matmul(dtype[left], dtype[right], dtype[result], **attrs)  # noqa: E731
    return Case(f"matmul-{name}", make, values, reference, tolerance)


def gemm_case(name: str, a: tuple, b: tuple, c: tuple | None, y: tuple, **attrs: object) -> Case:
    """A case of `gemm` at shapes of f32."""

    def reference(a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None) -> np.ndarray:
        left, right = (a.T if attrs.get("trans_a") else a), (b.T if attrs.get("trans_b") else b)
        made = np.float32(attrs.get("alpha", 1)) * (left @ right)
        return made if c is None else made + np.float32(attrs.get("beta", 1)) * c

    types = [None if shape is None else tl.f32[shape] for shape in (a, b, c, y)]
    inputs = normal(*(shape for shape in (a, b, c) if shape is not None))
    return Case(f"gemm-{name}", lambda: gemm(*types, **attrs), inputs, reference, 1e-5)


CASES = (
    case((6, 5), (5, 3), (6, 3), name="narrow"),
    case((7, 5), (5, 37), (7, 37), name="overlapping tiles"),
    case((n, k), (k, m), (n, m), name="symbolic", n=9, k=4, m=35),
    case((n, 4), (4, 16), (n, 16), name="symbolic rows", n=5),
    case((n, 3, 4), (4, 16), (n, 3, 16), name="shared right operand", n=2),
    case((2, 3, 4), (2, 4, 17), (2, 3, 17), name="batches"),
    case((2, 1, 3, 4), (3, 4, 5), (2, 3, 3, 5), name="broadcast batches"),
    case((3, 4), (2, 4, 5), (2, 3, 5), name="shared left operand"),
    case((2, 1, 4, 3), (3, 17, 4), (2, 3, 3, 17), turned="ab", name="transposes"),
    case((n, 4, 3), (4, 16), (n, 3, 16), turned="a", name="transposes with a shared right operand", n=2),
    case((4,), (4, 5), (5,), name="row"),
    case((3, 4), (4,), (3,), name="column"),
    case((4,), (4,), (), name="inner"),
    case((n, 0), (0, 5), (n, 5), name="no terms", n=3),
    case((5, 6), (6, 33), (5, 33), dtype=tl.f64, name="f64"),
    case((5, 6), (6, 33), (5, 33), dtype=tl.f16, name="f16"),
    case((5, 6), (6, 40), (5, 40), dtype=tl.i32, name="i32"),
    case((5, 6), (6, 7), (5, 7), dtype=tl.i64, name="i64"),
    gemm_case("plain", (4, 5), (5, 20), None, (4, 20)),
    gemm_case("transposed", (5, 4), (20, 5), (20,), (4, 20), trans_a=True, trans_b=True, alpha=0.5, beta=2.0),
    gemm_case("one row", (1, 37), (11, 37), (11,), (1, 11), trans_b=True),
    gemm_case("one sum of a transpose", (37, 1), (37, 1), None, (1, 1), trans_a=True),
    gemm_case("bias of rows", (6, 5), (9, 5), (6, 1), (6, 9), trans_b=True),
    gemm_case("bias", (6, 5), (5, 18), (6, 18), (6, 18), beta=0.5),
)
