"""Cases of the kernels of `tirlite.kernels.operators.panels`."""

from __future__ import annotations

import numpy as np
from operator_cases.case import Case, normal

import tirlite as tl
from tirlite.kernels.operators.panels import pointwise, product


def product_case(name: str, rows: tuple, terms: int, columns: int, size: int, c: tuple | None) -> Case:
    """A case of `product` of so many columns each, with 2 times something to add."""

    def reference(a: np.ndarray, w: np.ndarray, c: np.ndarray | None = None) -> np.ndarray:
        made = a @ w.swapaxes(0, 1).reshape(terms, columns)
        return made if c is None else made + 2 * c

    shapes = ((*rows, terms), (columns // size, terms, size), c, (*rows, columns))
    types = [None if shape is None else tl.f32[shape] for shape in shapes]
    inputs = normal(*(shape for shape in shapes[:3] if shape is not None))
    return Case(f"product-{name}", lambda: product(*types, beta=2.0), inputs, reference, 1e-5)


def pointwise_case(name: str, x: tuple, outputs: int, size: int, *, has_bias: bool) -> Case:
    """A case of `pointwise` with so many outputs in a panel."""

    def reference(x: np.ndarray, w: np.ndarray, b: np.ndarray | None = None) -> np.ndarray:
        made = np.einsum("tkhw,pkj->tpjhw", x, w).reshape(x.shape[0], outputs, *x.shape[2:])
        return made if b is None else made + b[:, None, None]

    shapes = (x, (outputs // size, x[1], size), (outputs,) if has_bias else None, (x[0], outputs, *x[2:]))
    types = [None if shape is None else tl.f32[shape] for shape in shapes]
    inputs = normal(*(shape for shape in shapes[:3] if shape is not None))
    return Case(f"pointwise-{name}", lambda: pointwise(*types), inputs, reference, 1e-5)


CASES = (
    product_case("alone", (3, 5), 9, 64, 32, None),
    product_case("bias", (20,), 17, 128, 64, (128,)),
    product_case("bias of rows", (7,), 5, 64, 64, (7, 1)),
    product_case("sum", (7,), 5, 64, 32, (7, 64)),
    pointwise_case("alone", (1, 9, 3, 5), 64, 32, has_bias=False),
    pointwise_case("several images", (3, 9, 3, 5), 64, 64, has_bias=True),
)
