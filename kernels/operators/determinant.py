"""The determinant of square matrices, by elimination with the greatest element of a column as its pivot."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.ir import PrimFunc, TensorType
from tirlite.kernels.operators.case import Case, normal
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.shapes import extents, product


@factory
def det(X: TensorType, Y: TensorType) -> PrimFunc:
    """y[...] = the determinant of x[..., :, :]; 1 where it has no rows."""
    *batch, size, _ = extents(X)
    count, kind = product(batch), computed_in(X.dtype)

    @tl.kernel
    def det(x: X, y: tl.out[Y]):
        matrices = tl.view(x, x.dtype[count, size, size])
        results = tl.view(y, y.dtype[count])
        for t in tl.parallel(count):
            rows = tl.alloc(kind[size, size])
            for i in range(size):
                for j in range(size):
                    rows[i, j] = kind(matrices[t, i, j])
            result = kind(1)
            for k in range(size):
                pivot = k
                for i in range(k + 1, size):
                    pivot = i if abs(rows[i, k]) > abs(rows[pivot, k]) else pivot
                if pivot != k:
                    result = -result
                    for j in range(k, size):
                        other = rows[pivot, j]
                        rows[pivot, j] = rows[k, j]
                        rows[k, j] = other
                head = rows[k, k]
                result *= head
                if head != 0:
                    for i in range(k + 1, size):
                        factor = rows[i, k] / head
                        for j in range(k + 1, size):
                            rows[i, j] -= factor * rows[k, j]
            results[t] = y.dtype(result)

    return det.ir


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
