"""Makes the matrix of weights that resamples an axis in a given way: for what has no kernel of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tirlite.record import record

Array = npt.NDArray[Any]


@record
class Resampling:
    """As ONNX's Resize spells it."""

    mode: str
    coordinates: str
    rounding: str
    cubic: float
    antialias: bool
    exclude_outside: bool


def matrix(
    way: Resampling,
    old: int,
    new: int,
    scale: float | None,
    region: tuple[float, float] | None,
    outside: float,
) -> Array | None:
    """`[new, old]` weights; None for ways that are not weighted sums, or are unknown."""
    ratio = new / old if scale is None else scale
    made = np.zeros((new, old))
    for index in range(new):
        place = _place(way.coordinates, index, old, new, ratio, region)
        if place is None:
            return None
        if region is not None and not 0 <= place <= old - 1:
            if outside:
                return None
            continue
        for at, weight in _weights(way, place, old, ratio):
            made[index, at] += weight
    return made


def _place(
    coordinates: str, index: int, old: int, new: int, ratio: float, region: tuple[float, float] | None
) -> float | None:
    if coordinates == "tf_crop_and_resize" and region is not None:
        start, end = region
        if new > 1:
            return start * (old - 1) + index * (end - start) * (old - 1) / (new - 1)
        return 0.5 * (start + end) * (old - 1)
    if coordinates == "asymmetric":
        return index / ratio
    if coordinates == "align_corners":
        return index * (old - 1) / (ratio * old - 1) if ratio * old != 1 else 0.0
    if coordinates == "half_pixel_symmetric":
        middle = old / 2
        return middle * (1 - new / (ratio * old)) + (index + 0.5) / ratio - 0.5
    if coordinates == "pytorch_half_pixel" and new <= 1:
        return 0.0
    if coordinates in ("half_pixel", "pytorch_half_pixel"):
        return (index + 0.5) / ratio - 0.5
    return None


def _weights(way: Resampling, place: float, old: int, ratio: float) -> list[tuple[int, float]]:
    """The elements that one of the result is made of, each with its weight; places outside count as the edge."""
    if way.mode == "nearest":
        return [(int(np.clip(_rounded(place, way.rounding), 0, old - 1)), 1.0)]
    stretch = max(1.0, 1 / ratio) if way.antialias else 1.0
    reach = (2 if way.mode == "cubic" else 1) * stretch
    first, last = int(np.floor(place - reach)) + 1, int(np.ceil(place + reach)) - 1
    if not way.antialias:
        low = int(np.floor(place))
        first, last = (low - 1, low + 2) if way.mode == "cubic" else (low, low + 1)
    kernel = _cubic if way.mode == "cubic" else _linear
    found = [(at, kernel((place - at) / stretch, way.cubic)) for at in range(first, last + 1)]
    if way.exclude_outside or way.antialias:
        found = [(at, weight if 0 <= at < old or not way.exclude_outside else 0.0) for at, weight in found]
        total = sum(weight for _, weight in found)
        found = [(at, weight / total) for at, weight in found]
    return [(min(max(at, 0), old - 1), weight) for at, weight in found]


def _rounded(place: float, rounding: str) -> float:
    if rounding == "round_prefer_floor":
        return float(np.ceil(place - 0.5))
    if rounding == "round_prefer_ceil":
        return float(np.floor(place + 0.5))
    return float(np.floor(place) if rounding == "floor" else np.ceil(place))


def _linear(distance: float, _: float) -> float:
    return max(0.0, 1 - abs(distance))


def _cubic(distance: float, a: float) -> float:
    """Keys' kernel of cubic convolution."""
    x = abs(distance)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0
