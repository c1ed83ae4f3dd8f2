"""Operators that bring tensors to other extents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tirlite.graph.builder.calls import CallBuilder, Operand
from tirlite.graph.builder.declare import operator
from tirlite.graph.demands import proof_of_most
from tirlite.graph.expr import Call
from tirlite.graph.extents import Extent, Shape, shape_of
from tirlite.graph.op import Array, Attrs, Lowering, Site
from tirlite.graph.types import TensorType
from tirlite.record import record
from tirlite.sizes import Proof, prove_le

COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")


ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


@record
class Resize(Attrs):
    """The extents of the result; over those of the operand as they were given, where they were (else None); the way.

    `mode` is "nearest", with a `rounding`, "linear", or "cubic", by Keys' convolution with this coefficient;
    `coordinates` says where an element of the result lies.
    """

    shape: Shape
    scales: tuple[float | None, ...]
    mode: str = "nearest"
    coordinates: str = "half_pixel"
    rounding: str = "round_prefer_floor"
    cubic: float = -0.75


def _resize_type(site: Site, attrs: Resize) -> TensorType:
    x = site.tensor(0)
    for name, given in (("shape", attrs.shape), ("scales", attrs.scales)):
        if len(given) != x.rank:
            raise site.bad_attribute(f"{name} has {len(given)} entries, and there are {x.rank} axes")
    for name, text, known in (
        ("mode", attrs.mode, ("nearest", "linear", "cubic")),
        ("coordinates", attrs.coordinates, COORDINATES),
        ("rounding", attrs.rounding, ROUNDINGS),
    ):
        if text not in known:
            raise site.bad_attribute(f"{name} must be one of {', '.join(known)}")
    if any(prove_le(0, extent) is Proof.NO for extent in attrs.shape):
        raise site.bad_attribute("extents must not be negative")
    for axis, (old, new) in enumerate(zip(x.shape, attrs.shape, strict=True)):
        if proof_of_most(1, new) is Proof.YES and not site.is_most(1, old):
            raise site.mismatch(f"axis {axis} is empty, and is to have {new} elements")
    return TensorType(attrs.shape, x.dtype)


def _resize(attrs: Resize, x: Array) -> Array:
    y = x if attrs.mode == "nearest" or x.dtype == np.float64 else x.astype(np.float32)
    for axis, (old, new, scale) in enumerate(zip(x.shape, attrs.shape, attrs.scales, strict=True)):
        assert isinstance(new, int)
        if (old, scale or 1.0) == (new, 1.0):
            continue
        place = _places(attrs.coordinates, old, new, scale)
        if attrs.mode == "nearest":
            y = np.take(y, np.clip(_rounded(place, attrs.rounding), 0, old - 1).astype(np.int64), axis)
            continue
        if attrs.mode == "cubic":
            y = _cubic(y, axis, place, attrs.cubic)
            continue
        inside = np.clip(place, 0, old - 1)
        low = np.minimum(np.floor(inside).astype(np.int64), old - 1)
        share = (inside - low).reshape(-1, *(1,) * (x.ndim - 1 - axis)).astype(y.dtype)
        y = np.take(y, low, axis) * (1 - share) + np.take(y, np.minimum(low + 1, old - 1), axis) * share
    return np.asarray(y).astype(x.dtype)


def _cubic(y: Array, axis: int, place: Array, a: float) -> Array:
    """The sums of the four elements around each place, weighted by Keys' convolution; the edge goes on outside."""
    low = np.floor(place)
    total = np.zeros((), y.dtype)
    for step in range(-1, 3):
        x = np.abs(place - low - step)
        near = (a + 2) * x**3 - (a + 3) * x**2 + 1
        far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
        weight = np.where(x <= 1, near, np.where(x < 2, far, 0.0)).reshape(-1, *(1,) * (y.ndim - 1 - axis))
        at = np.clip(low + step, 0, y.shape[axis] - 1).astype(np.int64)
        total = total + np.take(y, at, axis) * weight.astype(y.dtype)
    return np.asarray(total)


def _places(coordinates: str, old: int, new: int, scale: float | None) -> Array:
    """Where each index of the result lies in the operand."""
    at = np.arange(new, dtype=np.float64)
    ratio = new / old if scale is None else scale
    if coordinates == "asymmetric":
        return at / ratio
    if coordinates == "align_corners":
        # The corners are those before the extent was cut to a whole number.
        return at * (old - 1) / max((new if scale is None else old * scale) - 1, 1)
    if coordinates == "pytorch_half_pixel" and new <= 1:
        return at * 0
    return (at + 0.5) / ratio - 0.5


def _rounded(place: Array, rounding: str) -> Array:
    if rounding == "round_prefer_floor":
        return np.ceil(place - 0.5)
    if rounding == "round_prefer_ceil":
        return np.floor(place + 0.5)
    return np.asarray(np.floor(place) if rounding == "floor" else np.ceil(place))


class Scaling(CallBuilder):
    """Elements at other places."""

    @operator(_resize_type, _resize, Lowering("resize.resize", said=("shape",)), attrs=Resize)
    def resize(
        self,
        x: Operand,
        shape: Sequence[Extent],
        *,
        scales: Sequence[float | None] | None = None,
        mode: str = "nearest",
        coordinates: str = "half_pixel",
        rounding: str = "round_prefer_floor",
        cubic: float = -0.75,
    ) -> Call:
        """x at other extents, by the "nearest" element, "linear" or "cubic" between neighbours; places as in ONNX."""
        given = (None,) * len(shape) if scales is None else tuple(scales)
        attrs = Resize(shape_of(shape, self._here()), given, mode, coordinates, rounding, cubic)
        return self.call("resize", x, attrs=attrs)
