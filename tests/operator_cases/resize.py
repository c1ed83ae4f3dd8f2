"""Cases of the kernel `resize`."""

from __future__ import annotations

from itertools import product
from math import floor

import numpy as np
from operator_cases.case import Case, normal

import tirlite as tl
from tirlite.kernels.operators.sampling import resize

COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")


ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def place_of(index: int, before: int, after: int, scale: float, coordinates: str) -> float:
    if coordinates == "asymmetric":
        return index / scale
    if coordinates == "align_corners":
        return index * (before - 1) / max(scale * before - 1, 1)
    if coordinates == "pytorch_half_pixel" and after == 1:
        return 0.0
    return (index + 0.5) / scale - 0.5


def nearest_of(place: float, rounding: str) -> int:
    down = floor(place)
    if rounding == "floor":
        return down
    if rounding == "ceil":
        return -floor(-place)
    fraction = place - down
    return down + (fraction > 0.5 or (fraction == 0.5 and rounding == "round_prefer_ceil"))


def keys(distance: float, a: float) -> float:
    x = abs(distance)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def resized(x: np.ndarray, shape: tuple[int, ...], scales, mode: str, coordinates: str, rounding: str) -> np.ndarray:
    """One axis after the other, by a matrix of weights."""
    y = x.astype(np.float64)
    for axis, (before, after) in enumerate(zip(x.shape, shape, strict=True)):
        weights = np.zeros((after, before))
        for index in range(after):
            place = place_of(index, before, after, scales[axis] or after / before, coordinates)
            if mode == "nearest":
                weights[index, min(max(nearest_of(place, rounding), 0), before - 1)] = 1
            elif mode == "cubic":
                for at in range(floor(place) - 1, floor(place) + 3):
                    weights[index, min(max(at, 0), before - 1)] += keys(place - at, -0.75)
            else:
                place = min(max(place, 0), before - 1)
                low = floor(place)
                weights[index, low] += 1 - (place - low)
                weights[index, min(low + 1, before - 1)] += place - low
        y = np.moveaxis(np.tensordot(weights, y, (1, axis)), 0, axis)
    return y.astype(x.dtype)


def case(
    name: str, x: tuple, y: tuple, *, sizes: dict | None = None, scales: tuple | None = None, **attrs: str
) -> Case:
    """A case at shapes, with the extents of the dims in `sizes`."""
    scales = scales or (None,) * len(x)
    given, wanted = (tuple((sizes or {}).get(each, each) for each in shape) for shape in (x, y))
    full = {"mode": "nearest", "coordinates": "half_pixel", "rounding": "round_prefer_floor"} | attrs
    return Case(
        f"resize-{name}",
        lambda: resize(tl.f32[x], tl.f32[y], scales=scales, **attrs),
        normal(given),
        lambda array: resized(array, wanted, scales, **full),
        1e-6,
    )


n = tl.dim("n")


CASES = (
    case("linear-fraction", (2, 5), (2, 13), scales=(None, 2.7), coordinates="align_corners", mode="linear"),
    *(
        case(
            f"nearest-{coordinates}-{rounding}", (1, 2, 4, 5), (1, 2, 7, 3), coordinates=coordinates, rounding=rounding
        )
        for coordinates, rounding in product(COORDINATES, ROUNDINGS)
    ),
    *(
        case(f"linear-{coordinates}", (1, 2, 4, 5), (1, 2, 8, 3), coordinates=coordinates, mode="linear")
        for coordinates in COORDINATES
    ),
    *(
        case(f"cubic-{coordinates}", (1, 2, 4, 5), (1, 2, 9, 3), coordinates=coordinates, mode="cubic")
        for coordinates in COORDINATES
    ),
    *(
        case(f"times-{coordinates}-{rounding}", (2, 3, 1), (4, 9, 4), coordinates=coordinates, rounding=rounding)
        for coordinates, rounding in (
            ("asymmetric", "floor"),
            ("asymmetric", "ceil"),
            ("half_pixel", "round_prefer_ceil"),
            ("pytorch_half_pixel", "round_prefer_floor"),
            ("align_corners", "round_prefer_floor"),
        )
    ),
    case("times another scale", (2, 3), (2, 6), scales=(None, 2.2), coordinates="asymmetric", rounding="floor"),
    case("one axis", (2, 6), (2, 4), mode="linear", scales=(1.0, 0.7)),
    case(
        "symbolic",
        (n, 3, 4),
        (n, 6, 8),
        sizes={n: 2},
        scales=(1.0, 2.0, 2.0),
        coordinates="asymmetric",
        rounding="floor",
    ),
)
