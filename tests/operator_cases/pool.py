"""Cases of pools."""

from __future__ import annotations

from itertools import product

import numpy as np
from operator_cases.case import Case, integers, normal

import tirlite as tl
from tirlite.ir import DType
from tirlite.kernels.operators.pool import average_pool, max_pool, max_pool_indices

Sizes = tuple[int, ...]


def places_of(extent: object, reach: int, stride: int, pads: Sizes, *, ceil: bool) -> object:
    """How many places a window that reaches over `reach + 1` elements has along an axis."""
    room = extent + sum(pads) - reach - 1
    if not ceil:
        return room // stride + 1
    return min((room + stride - 1) // stride + 1, (extent + pads[0] + stride - 1) // stride)


def pooled(x: np.ndarray, places: Sizes, window: Sizes, strides: Sizes, pads: Sizes, dilations: Sizes, **mode: bool):
    """The elements under each place, place by place: their maximum, or their mean over those that count."""
    axes = len(window)
    y = np.zeros((*x.shape[:2], *places), x.dtype)
    for place in product(*map(range, places)):
        indices, counted = [], 1
        for k in range(axes):
            start = place[k] * strides[k] - pads[k]
            at = [start + p * dilations[k] for p in range(window[k])]
            low, high = (-pads[k], x.shape[2 + k] + pads[axes + k]) if mode["include"] else (0, x.shape[2 + k])
            counted *= sum(low <= index < high for index in at)
            indices.append([index for index in at if 0 <= index < x.shape[2 + k]])
        under = x[:, :, *np.ix_(*indices)]
        over = tuple(range(2, 2 + axes))
        y[:, :, *place] = under.max(axis=over) if mode["greatest"] else under.sum(axis=over) / counted
    return y


def case(
    name: str,
    x: Sizes,
    window: Sizes,
    *,
    greatest: bool = False,
    strides: Sizes | None = None,
    pads: Sizes | None = None,
    dilations: Sizes | None = None,
    ceil: bool = False,
    include: bool = False,
    dtype: DType = tl.f32,
    free: bool = False,
) -> Case:
    """A case at the shape of x, whose axes are all dims if it is `free`."""
    axes = len(window)
    strides, dilations, pads = strides or (1,) * axes, dilations or (1,) * axes, pads or (0,) * 2 * axes

    def places(shape: tuple) -> tuple:
        rows = zip(shape[2:], window, strides, dilations, pads[:axes], pads[axes:], strict=True)
        return tuple(places_of(e, d * (w - 1), s, (p, q), ceil=ceil) for e, w, s, d, p, q in rows)

    shape = tuple(tl.dim(f"d{k}", min=4 if k > 1 else 1) for k in range(len(x))) if free else x
    attrs = {"window": window, "strides": strides, "pads": pads, "dilations": dilations}
    types = (dtype[shape], dtype[(*shape[:2], *places(shape))])
    function = max_pool if greatest else average_pool
    mode = {"include": include, "greatest": greatest}
    counts = {} if greatest else {"count_include_pad": include}
    return Case(
        f"{function.__name__}-{name}",
        lambda: function(*types, **attrs, **counts),
        normal(x, dtype=dtype.numpy.type) if dtype.is_float else integers(-99, 99, x, dtype=dtype.numpy.type),
        lambda x: pooled(x, places(x.shape), **attrs, **mode),
        0 if greatest else {tl.f16: 2e-3, tl.f32: 1e-6, tl.f64: 1e-14}[dtype],
    )


def indexed(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The greatest of each 2 x 2 elements, padded by one at the front, and its place in the channel."""
    inside = np.pad(x, ((0, 0), (0, 0), (1, 0), (1, 0)), constant_values=-np.inf)
    places = np.pad(np.arange(x[0, 0].size).reshape(x.shape[2:]), ((1, 0), (1, 0)), constant_values=-1)
    parts = [(inside[:, :, i::2, j::2], places[i::2, j::2]) for i in (0, 1) for j in (0, 1)]
    seen = np.stack([values for values, _ in parts], -1)
    at = np.broadcast_to(np.stack([each for _, each in parts], -1), seen.shape)
    first = seen.argmax(-1)[..., None]
    return np.take_along_axis(seen, first, -1)[..., 0], np.take_along_axis(at, first, -1)[..., 0]


def indexed_case() -> Case:
    attrs = {"window": (2, 2), "strides": (2, 2), "pads": (1, 1, 0, 0), "dilations": (1, 1)}
    types = (tl.f32[2, 3, 5, 7], tl.f32[2, 3, 3, 4], tl.i64[2, 3, 3, 4])
    inputs = integers(-3, 4, (2, 3, 5, 7), dtype=np.float32)
    return Case("max_pool_indices", lambda: max_pool_indices(*types, **attrs), inputs, indexed)


CASES = (
    indexed_case(),
    case("plain", (2, 3, 6, 7), (2, 3), greatest=True),
    case("padded", (1, 2, 5, 6), (3, 3), greatest=True, strides=(2, 2), pads=(1, 1, 1, 1)),
    case("wide", (1, 2, 3, 70), (1, 2), greatest=True),
    case("ceil", (1, 2, 6, 6), (3, 3), greatest=True, strides=(2, 2), ceil=True),
    case("dilated", (1, 2, 8, 8), (2, 3), greatest=True, dilations=(3, 2)),
    case("one axis", (1, 3, 9), (2,), greatest=True, strides=(2,), pads=(1, 0)),
    case("i8", (1, 2, 5, 5), (2, 2), greatest=True, dtype=tl.i8, pads=(1, 1, 1, 1)),
    case("symbolic", (2, 3, 6, 7), (2, 2), greatest=True, strides=(2, 2), free=True),
    case("plain", (2, 3, 6, 7), (2, 3)),
    case("padded", (1, 2, 5, 6), (3, 3), strides=(2, 2), pads=(1, 1, 1, 1)),
    case("with padding", (1, 2, 5, 6), (3, 3), strides=(2, 2), pads=(1, 1, 1, 1), include=True),
    case("ceil", (1, 2, 6, 6), (3, 3), strides=(2, 2), ceil=True),
    case("ceil with padding", (1, 2, 6, 7), (3, 3), strides=(2, 2), pads=(1, 0, 0, 1), ceil=True, include=True),
    case("dilated", (1, 2, 8, 8), (2, 3), dilations=(3, 2), pads=(1, 1, 1, 1)),
    case("three axes", (1, 2, 4, 5, 4), (2, 2, 3), strides=(1, 2, 1)),
    case("symbolic", (2, 3, 6, 7), (3, 2), strides=(2, 2), pads=(1, 0, 1, 0), free=True),
    case("f16", (1, 2, 5, 6), (2, 2), dtype=tl.f16),
    case("f64", (1, 2, 5, 6), (2, 2), dtype=tl.f64),
)
