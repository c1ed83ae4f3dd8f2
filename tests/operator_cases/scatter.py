"""Cases of the kernels of `tirlite.kernels.operators.indexing`."""

from __future__ import annotations

import numpy as np
from operator_cases.case import Case, integers, joined, normal

import tirlite as tl
from tirlite.kernels.operators.indexing import scatter_elements, scatter_nd

n, m = tl.dims("n m")


UFUNCS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def case(name: str, factory, x: tuple, indices: tuple, updates: tuple, high: int, **attrs: object) -> Case:
    """A case with random indices, negative ones among them; n is 4 and m is 3."""
    shapes = [tuple({n: 4, m: 3}.get(each, each) for each in shape) for shape in (x, indices, updates)]
    types = (tl.f32[x], tl.i64[indices], tl.f32[updates], tl.f32[x])

    def reference(x: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
        y = x.copy()
        where = np.indices(indices.shape) if factory is scatter_elements else np.moveaxis(indices, -1, 0)
        if factory is scatter_elements:
            where[attrs["axis"]] = indices
        if "reduction" in attrs:
            UFUNCS[attrs["reduction"]].at(y, tuple(where), updates)
        else:
            y[tuple(where)] = updates
        return y

    inputs = joined(normal(shapes[0]), integers(-high, high, shapes[1]), normal(shapes[2]))
    return Case(name, lambda: factory(*types, **attrs), inputs, reference, 1e-6)


CASES = (
    case("scatter_elements", scatter_elements, (n, 6, m), (3, 4, 2), (3, 4, 2), 6, axis=1),
    *(
        case(f"scatter_elements-{name}", scatter_elements, (5, n), (9, n), (9, n), 5, axis=0, reduction=name)
        for name in UFUNCS
    ),
    case("scatter_nd", scatter_nd, (n, 4, m), (5, 2), (5, m), 4),
    case("scatter_nd-elements", scatter_nd, (3, 4), (2, 5, 2), (2, 5), 3),
    case("scatter_nd-add", scatter_nd, (6, m), (9, 1), (9, m), 6, reduction="add"),
)
