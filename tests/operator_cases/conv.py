"""Cases of convolutions and their transposes, at few axes and many attributes."""

from __future__ import annotations

from itertools import product

import numpy as np
from operator_cases.case import Case, normal

import tirlite as tl
from tirlite.ir import DType
from tirlite.kernels.operators.conv import conv, conv_depthwise, conv_transpose

Sizes = tuple[int, ...]


def convolved(
    x: np.ndarray, w: np.ndarray, strides: Sizes, pads: Sizes, dilations: Sizes, groups: int, *bias: np.ndarray
) -> np.ndarray:
    """The sum over the taps of the window of what lies under them."""
    axes = len(strides)
    padded = np.pad(x, ((0, 0), (0, 0), *zip(pads[:axes], pads[axes:], strict=True)))
    places = [(padded.shape[2 + k] - dilations[k] * (w.shape[2 + k] - 1) - 1) // strides[k] + 1 for k in range(axes)]
    y = np.zeros((x.shape[0], groups, w.shape[0] // groups, *places), x.dtype)
    for tap in product(*map(range, w.shape[2:])):
        starts = [tap[k] * dilations[k] for k in range(axes)]
        under = padded[
            :, :, *(slice(s, s + strides[k] * (places[k] - 1) + 1, strides[k]) for k, s in enumerate(starts))
        ].reshape(x.shape[0], groups, w.shape[1], *places)
        factors = w[:, :, *tap].reshape(groups, -1, w.shape[1])
        y += np.einsum("goc,ngc...->ngo...", factors, under)
    y = y.reshape(x.shape[0], w.shape[0], *places)
    return y + bias[0].reshape(-1, *(1,) * axes) if bias else y


def spread(
    x: np.ndarray, w: np.ndarray, strides: Sizes, pads: Sizes, dilations: Sizes, groups: int, *bias: np.ndarray
) -> np.ndarray:
    """Each element of x times the window, added up."""
    axes = len(strides)
    full = [(x.shape[2 + k] - 1) * strides[k] + dilations[k] * (w.shape[2 + k] - 1) + 1 for k in range(axes)]
    y = np.zeros((x.shape[0], groups, w.shape[1], *full), x.dtype)
    parted = x.reshape(x.shape[0], groups, -1, *x.shape[2:])
    for tap in product(*map(range, w.shape[2:])):
        starts = [tap[k] * dilations[k] for k in range(axes)]
        under = tuple(slice(s, s + strides[k] * (x.shape[2 + k] - 1) + 1, strides[k]) for k, s in enumerate(starts))
        factors = w[:, :, *tap].reshape(groups, -1, w.shape[1])
        y[:, :, :, *under] += np.einsum("gco,ngc...->ngo...", factors, parted)
    y = y.reshape(x.shape[0], -1, *full)
    y = y[:, :, *(slice(pads[k], full[k] - pads[axes + k]) for k in range(axes))]
    return y + bias[0].reshape(-1, *(1,) * axes) if bias else y


def case(
    name: str,
    x: Sizes,
    w: Sizes,
    *,
    strides: Sizes | None = None,
    pads: Sizes | None = None,
    dilations: Sizes | None = None,
    groups: int = 1,
    bias: bool = True,
    transposed: bool = False,
    permutes: bool = False,
    dtype: DType = tl.f32,
    free: tuple[int, ...] = (),
) -> Case:
    """A case at the shapes of x and w; the axes of x in `free` are dims. It `permutes` lanes, or may not."""
    axes = len(x) - 2
    strides, dilations, pads = strides or (1,) * axes, dilations or (1,) * axes, pads or (0,) * 2 * axes
    outputs = w[1] * groups if transposed else w[0]
    dims = [tl.dim(f"d{k}", min=4 if k else 1) if k in free else extent for k, extent in enumerate(x)]
    places = []
    for k in range(axes):
        reach, padding = dilations[k] * (w[2 + k] - 1), pads[k] + pads[axes + k]
        if transposed:
            places.append((dims[2 + k] - 1) * strides[k] + reach + 1 - padding)
        else:
            places.append((dims[2 + k] + padding - reach - 1) // strides[k] + 1)
    attrs = {"strides": strides, "pads": pads, "dilations": dilations, "groups": groups}
    types = (dtype[tuple(dims)], dtype[w], dtype[outputs] if bias else None, dtype[(dims[0], outputs, *places)])
    reference = spread if transposed else convolved
    function = conv_transpose if transposed else conv_depthwise if permutes else conv
    return Case(
        f"{function.__name__}-{name}",
        lambda: function(*types, **attrs),
        normal(x, w, *([(outputs,)] if bias else []), dtype=dtype.numpy.type),
        lambda x, w, *b: reference(x, w, strides, pads, dilations, groups, *b),
        4e-3 if dtype is tl.f16 else 1e-5,
    )


CASES = (
    case("plain", (1, 2, 5, 6), (3, 2, 3, 3), bias=False),
    case("padded", (1, 2, 5, 6), (5, 2, 3, 3), pads=(1, 1, 1, 1)),
    case("rows in line", (1, 2, 3, 40), (5, 2, 3, 3), pads=(1, 1, 1, 1)),
    case("pads apart", (2, 1, 4, 5), (2, 1, 2, 3), pads=(0, 2, 1, 0)),
    case("steps", (1, 2, 7, 8), (3, 2, 3, 3), strides=(2, 3), pads=(1, 1, 1, 1)),
    case("dilated", (1, 2, 8, 7), (3, 2, 3, 2), dilations=(2, 3), pads=(2, 1, 2, 1)),
    case("groups", (2, 6, 5, 4), (9, 2, 2, 3), groups=3, pads=(1, 1, 0, 1)),
    case("many outputs", (1, 2, 4, 5), (70, 2, 3, 3), strides=(2, 1), pads=(1, 1, 1, 1), free=(2, 3)),
    case("a spectrum", (1, 1, 100), (20, 1, 40), strides=(9,), pads=(3, 2), free=(2,)),
    case("outputs that no tile divides", (1, 3, 5, 8), (17, 3, 3, 3), pads=(1, 1, 1, 1)),
    case("one output", (1, 6, 5, 20), (1, 6, 3, 3), pads=(1, 1, 1, 1)),
    case("outputs in runs that no share divides", (1, 1, 3, 4), (96, 1, 3, 3), pads=(1, 1, 1, 1)),
    case("depthwise", (2, 3, 5, 6), (3, 1, 3, 3), groups=3, pads=(1, 1, 1, 1)),
    case("depthwise by two", (1, 3, 9, 9), (6, 1, 3, 3), groups=3, strides=(2, 2)),
    case("depthwise by two in vectors", (1, 2, 40, 40), (2, 1, 3, 3), groups=2, strides=(2, 2), pads=(1, 1, 1, 1)),
    case("depthwise by two beside padding", (1, 2, 5, 47), (2, 1, 3, 3), groups=2, strides=(2, 2), pads=(1, 1, 1, 1)),
    case("depthwise by three", (1, 2, 30, 40), (2, 1, 5, 5), groups=2, strides=(1, 3), pads=(2, 2, 2, 2)),
    case("depthwise short rows", (2, 3, 7, 7), (3, 1, 5, 5), groups=3, pads=(2, 2, 2, 2)),
    case("depthwise bands", (1, 2, 13, 8), (2, 1, 3, 5), groups=2, dilations=(2, 1), pads=(2, 2, 2, 2)),
    case("depthwise bands by two", (1, 2, 27, 35), (2, 1, 5, 3), groups=2, strides=(2, 2), pads=(2, 1, 2, 1)),
    case("depthwise rows", (1, 3, 4, 40), (3, 1, 3, 3), groups=3, pads=(1, 1, 1, 1)),
    case(
        "depthwise dilated", (1, 2, 9, 8), (2, 1, 3, 2), groups=2, strides=(2, 3), dilations=(3, 2), pads=(2, 1, 0, 1)
    ),
    case("one channel in blocks", (1, 1, 2, 1030), (2, 1, 2, 5), strides=(1, 2), pads=(1, 2, 0, 2)),
    case("depthwise one axis", (2, 3, 11), (3, 1, 4), groups=3, strides=(2,), pads=(2, 1), free=(2,)),
    case("depthwise three axes", (1, 2, 4, 4, 5), (2, 1, 2, 2, 3), groups=2, pads=(1, 0, 1, 0, 1, 1), free=(2,)),
    case("depthwise symbolic", (2, 2, 6, 7), (2, 1, 3, 3), groups=2, strides=(2, 1), pads=(1, 1, 1, 1), free=(0, 2, 3)),
    case("depthwise f16", (1, 3, 5, 6), (3, 1, 3, 3), groups=3, pads=(1, 1, 1, 1), dtype=tl.f16),
    case("rows at once", (2, 3, 9, 5), (3, 1, 3, 3), groups=3, pads=(1, 1, 1, 1), permutes=True),
    case("rows at once, the last alone", (1, 2, 7, 7), (2, 1, 5, 5), groups=2, pads=(2, 2, 2, 2), permutes=True),
    case("rows at once of another height", (1, 2, 9, 6), (2, 1, 3, 3), groups=2, pads=(0, 2, 4, 0), permutes=True),
    case(
        "dilated rows at once",
        (2, 2, 8, 8),
        (2, 1, 3, 2),
        groups=2,
        dilations=(3, 2),
        pads=(3, 1, 1, 1),
        permutes=True,
    ),
    case("rows of one column at once", (1, 2, 37, 1), (2, 1, 3, 1), groups=2, pads=(1, 0, 1, 0), permutes=True),
    case("rows at once of f64", (1, 2, 6, 4), (2, 1, 3, 3), groups=2, pads=(1,) * 4, dtype=tl.f64, permutes=True),
    case("rows at once of f16", (1, 2, 6, 4), (2, 1, 3, 3), groups=2, pads=(1,) * 4, dtype=tl.f16, permutes=True),
    case("rows that become shorter", (1, 2, 9, 7), (2, 1, 3, 3), groups=2, pads=(1, 0, 1, 0), permutes=True),
    case("many rows", (1, 2, 50, 7), (2, 1, 3, 3), groups=2, pads=(1, 1, 1, 1), permutes=True),
    case("points", (2, 3, 6, 7), (5, 3, 1, 1)),
    case("points in steps", (2, 3, 6, 7), (5, 3, 1, 1), strides=(2, 2)),
    case("points in steps of groups", (2, 6, 7, 5), (8, 3, 1, 1), groups=2, strides=(2, 3)),
    case("points in steps at many places", (1, 2, 65, 66), (4, 2, 1, 1), strides=(2, 2)),
    case("points in steps where none knows how many", (1, 3, 6, 7), (5, 3, 1, 1), strides=(2, 1), free=(2, 3)),
    case("points of a channel in steps", (1, 3, 6, 7), (6, 1, 1, 1), groups=3, strides=(2, 2)),
    case("points in groups", (2, 4, 5, 5), (6, 2, 1, 1), groups=2),
    case("one axis", (2, 3, 11), (4, 3, 3), strides=(2,), pads=(2, 1), dilations=(2,)),
    case("three axes", (1, 2, 3, 4, 5), (2, 2, 2, 2, 3), pads=(1, 0, 1, 0, 1, 1)),
    case("symbolic", (2, 2, 6, 7), (3, 2, 3, 3), strides=(2, 1), pads=(1, 1, 1, 1), free=(0, 2, 3)),
    case("symbolic points", (2, 2, 6, 7), (3, 2, 1, 1), free=(0, 2, 3)),
    case("f64", (1, 2, 5, 6), (3, 2, 3, 3), dtype=tl.f64),
    case("f16", (1, 2, 5, 6), (3, 2, 3, 3), dtype=tl.f16),
    case("plain", (1, 2, 4, 3), (2, 3, 3, 3), bias=False, transposed=True),
    case("steps", (2, 2, 4, 3), (2, 3, 3, 2), strides=(2, 3), pads=(1, 0, 0, 1), transposed=True),
    case("places under no tap", (1, 2, 3, 4), (2, 3, 1, 2), strides=(3, 2), dilations=(1, 3), transposed=True),
    case("many phases", (1, 2, 2, 3), (2, 2, 6, 5), strides=(5, 4), pads=(1, 2, 0, 1), transposed=True),
    case("groups", (1, 4, 3, 4), (4, 2, 2, 2), groups=2, strides=(2, 1), dilations=(1, 2), transposed=True),
    case("phases alike", (2, 4, 4, 5), (4, 4, 4, 6), strides=(2, 3), pads=(1, 2, 0, 1), groups=2, transposed=True),
    case("windows beside each other", (1, 3, 4, 5), (3, 20, 2, 2), strides=(2, 2), transposed=True),
    case("each window alone", (2, 4, 3, 5), (4, 1, 3, 2), groups=4, strides=(3, 2), transposed=True),
    case("less than is padded", (1, 2, 3, 4), (2, 3, 2, 2), bias=False, pads=(1, 1, 1, 1), transposed=True),
    case("phases of one axis", (2, 2, 6), (2, 3, 4), strides=(2,), pads=(2, 1), transposed=True, dtype=tl.f16),
    case("one axis", (1, 2, 6), (2, 24, 4), strides=(2,), pads=(1, 1), transposed=True, free=(0, 2)),
    case("one element", (2, 3, 1, 1), (3, 5, 4, 3), transposed=True),
    case("depthwise", (1, 3, 5, 4), (3, 1, 4, 4), groups=3, strides=(2, 2), pads=(1, 1, 1, 1), transposed=True),
)
