"""The indices of the elements of a tensor that are not zero."""

from __future__ import annotations

import tirlite as tl
from tirlite.ir import PrimFunc, TensorType
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.shapes import elements, extents, product


@factory
def nonzero(X: TensorType, Y: TensorType) -> PrimFunc:
    """y[axis, k] = the index along each axis of element k that is not zero, in order; y has room for all of them."""
    shape, found = extents(X), extents(Y)[1]
    count = elements(X)
    inner = tuple(product(shape[axis + 1 :]) for axis in range(len(shape)))

    @tl.inline
    def put(y, at, t, axis=0):
        if tl.static(axis < len(shape)):
            y[axis, at] = t // tl.static(inner[axis]) % tl.static(shape[axis])
            put(y, at, t, tl.static(axis + 1))

    @tl.kernel
    def nonzero(x: X, y: tl.out[Y]):
        flat = tl.view(x, x.dtype[count])
        at = 0
        for t in range(count):
            if flat[t] != 0:
                assert at < found, f"more than {found} elements are not zero"
                put(y, at, t)
                at += 1
        assert at == found, f"{at} elements are not zero, and {found} were said to be"

    return nonzero.ir
