"""Cases of the kernels of `tirlite.kernels.operators.indexing`."""

from __future__ import annotations

import numpy as np
from operator_cases.case import Case, integers, joined, normal

import tirlite as tl
from tirlite.kernels.operators.indexing import gather, gather_elements, gather_nd

n, m = tl.dims("n m")


def nd_reference(x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    return x[tuple(np.moveaxis(indices, -1, 0))]


def batched_reference(x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    return np.stack([nd_reference(each, at) for each, at in zip(x, indices, strict=True)])


def case(name: str, factory, reference, x: tuple, indices: tuple, y: tuple, low: int, high: int, **attrs: int) -> Case:
    """A case with random indices from `low` to below `high`; n is 4 and m is 3."""
    sizes = [tuple({n: 4, m: 3}.get(each, each) for each in shape) for shape in (x, indices)]
    types = (tl.f32[x], tl.i64[indices], tl.f32[y])
    inputs = joined(normal(sizes[0]), integers(low, high, sizes[1]))
    return Case(name, lambda: factory(*types, **attrs), inputs, reference)


def take(axis: int):
    return lambda x, i: np.take(x, i, axis)


CASES = (
    case("gather-rows", gather, take(0), (7, 5), (n,), (n, 5), -7, 7, axis=0),
    case("gather-columns", gather, take(1), (n, 7), (2, 3), (n, 2, 3), -7, 7, axis=1),
    case("gather-middle", gather, take(1), (n, 7, m), (5,), (n, 5, m), 0, 7, axis=1),
    case("gather-one", gather, take(-1), (n, 7), (), (n,), 0, 7, axis=-1),
    case(
        "gather_elements",
        gather_elements,
        lambda x, i: np.take_along_axis(x[:, :, :2], i, 1),
        (n, 6, m),
        (n, 4, 2),
        (n, 4, 2),
        -6,
        6,
        axis=1,
    ),
    case("gather_nd", gather_nd, nd_reference, (n, 4, m), (5, 2), (5, m), -4, 4),
    case("gather_nd-elements", gather_nd, nd_reference, (3, 4), (2, 5, 2), (2, 5), 0, 3),
    case("gather_nd-batches", gather_nd, batched_reference, (n, 4, m), (n, 5, 1), (n, 5, m), 0, 4, batch_dims=1),
)
