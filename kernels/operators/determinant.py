"""The determinant of square matrices, by elimination with the greatest element of a column as its pivot."""

from __future__ import annotations

import tirlite as tl
from tirlite.ir import PrimFunc, TensorType
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
