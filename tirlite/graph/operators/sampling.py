"""Operators that sample images between their elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tirlite.graph.builder.calls import CallBuilder, Operand, operator
from tirlite.graph.demands import proof_of_most
from tirlite.graph.expr import Call
from tirlite.graph.extents import Extent, Shape, shape_of
from tirlite.graph.op import Array, Attrs, Lowering, Site
from tirlite.graph.operators.operands import every_axis, nonnegative, one_of
from tirlite.graph.types import TensorType
from tirlite.ir import i32, i64
from tirlite.record import record
from tirlite.sizes import Proof

MODES = ("nearest", "linear", "cubic")


PADDINGS = ("zeros", "border", "reflection")


@record
class GridSample(Attrs):
    """The interpolation, the padding outside of the image, and the meaning of -1 and 1.

    With `align_corners` these are the centres of the outermost elements, else their edges.
    """

    mode: str = "linear"
    padding: str = "zeros"
    align_corners: bool = False


@record
class RoiAlign(Attrs):
    """The bins of a region, the scale of its coordinates, and the number of samples of a bin along each axis.

    A `ratio` of 0 takes as many samples as a bin has elements. With `half_pixel` elements are half a unit after their
    index. A bin is the mean of its samples, or the `greatest` of them.
    """

    height: int = 1
    width: int = 1
    scale: float = 1.0
    ratio: int = 0
    half_pixel: bool = True
    greatest: bool = False


def _image(site: Site) -> TensorType:
    x = site.tensor(0)
    if x.rank < 3 or not x.dtype.is_float:
        raise site.wrong_type("operand 0 must have a batch axis, a channel axis and spatial ones, of a float type")
    return x


def _grid_sample_type(site: Site, attrs: GridSample) -> TensorType:
    x, grid = _image(site), site.tensor(1)
    for name, text, known in (("mode", attrs.mode, MODES), ("padding", attrs.padding, PADDINGS)):
        one_of(site, name, text, known)
    if not grid.dtype.is_float:
        raise site.wrong_type(f"places are of a float type, and are {grid.dtype}")
    if (
        grid.rank != x.rank
        or not site.is_equal(grid.shape[-1], x.rank - 2)
        or not site.is_equal(grid.shape[0], x.shape[0])
    ):
        raise site.mismatch(f"operand 1 must be [batch, *places, {x.rank - 2}]")
    return TensorType((*x.shape[:2], *grid.shape[1:-1]), x.dtype)


def _roi_align_type(site: Site, attrs: RoiAlign) -> TensorType:
    x, regions, batch = _image(site), site.tensor(1), site.tensor(2)
    if x.rank != 4:
        raise site.mismatch("operand 0 must have 4 axes")
    if regions.rank != 2 or not site.is_equal(regions.shape[1], 4) or regions.dtype != x.dtype:
        raise site.mismatch(f"operand 1 must be {x.dtype} with 4 numbers for each region")
    if batch.dtype not in (i32, i64) or batch.rank != 1 or not site.is_equal(batch.shape[0], regions.shape[0]):
        raise site.mismatch("operand 2 must have an index of i32 or i64 for each region")
    if attrs.height < 1 or attrs.width < 1 or attrs.ratio < 0:
        raise site.bad_attribute("there must be bins, and a ratio of 0 or more")
    if not all(site.is_most(1, extent) for extent in x.shape[2:]):
        raise site.mismatch(f"an image of {' x '.join(map(str, x.shape[2:]))} elements has none to take")
    return TensorType((regions.shape[0], x.shape[1], attrs.height, attrs.width), x.dtype)


class Sampling(CallBuilder):
    """Samples images `[batch, channels, *spatial]` at given coordinates."""

    @operator(_grid_sample_type, lowering="sampling.grid_sample", least=2, attrs=GridSample)
    def grid_sample(
        self, x: Operand, grid: Operand, *, mode: str = "linear", padding: str = "zeros", align_corners: bool = False
    ) -> Call:
        """x at the coordinates in the last axis of `grid`: from -1 to 1, the last axis of x first.

        `mode` is "nearest", "linear" or "cubic"; `padding` is "zeros", "border" or "reflection".
        """
        return self.call("grid_sample", x, grid, attrs=GridSample(mode, padding, align_corners))

    @operator(
        _roi_align_type, lowering=Lowering("sampling.roi_align", said=("height", "width")), least=3, attrs=RoiAlign
    )
    def roi_align(
        self,
        x: Operand,
        regions: Operand,
        batch: Operand,
        bins: tuple[int, int],
        *,
        scale: float = 1.0,
        ratio: int = 0,
        half_pixel: bool = True,
        greatest: bool = False,
    ) -> Call:
        """The mean of each bin of each region (left, top, right, bottom); `batch` has the index of a region's image.

        A bin has `ratio` samples along each axis, or as many as it covers elements; with `greatest` it is their max.
        """
        attrs = RoiAlign(*bins, scale, ratio, half_pixel, greatest)
        return self.call("roi_align", x, regions, batch, attrs=attrs)


COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")


# The rounding modes of nearest-neighbour interpolation, as ONNX names them.
ROUNDINGS: Mapping[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda place: np.ceil(place - 0.5),
    "round_prefer_ceil": lambda place: np.floor(place + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


@record
class Resize(Attrs):
    """The attributes of a resize, as in ONNX.

    shape: the extents of the result.
    scales: for each axis the factor as it was given, or None if the extent was given.
    mode: "nearest" with a `rounding`, "linear", or "cubic" by Keys' convolution with the coefficient `cubic`.
    coordinates: the transformation from result coordinates to operand coordinates.
    """

    shape: Shape
    scales: tuple[float | None, ...]
    mode: str = "nearest"
    coordinates: str = "half_pixel"
    rounding: str = "round_prefer_floor"
    cubic: float = -0.75


def _resize_type(site: Site, attrs: Resize) -> TensorType:
    x = site.tensor(0)
    every_axis(site, x, "shape", attrs.shape)
    every_axis(site, x, "scales", attrs.scales)
    for name, text, known in (
        ("mode", attrs.mode, ("nearest", "linear", "cubic")),
        ("coordinates", attrs.coordinates, COORDINATES),
        ("rounding", attrs.rounding, ROUNDINGS),
    ):
        one_of(site, name, text, known)
    nonnegative(site, "extents", attrs.shape)
    for axis, (old, new) in enumerate(zip(x.shape, attrs.shape, strict=True)):
        if proof_of_most(1, new) is Proof.YES and not site.is_most(1, old):
            raise site.mismatch(f"axis {axis} is empty, and is to have {new} elements")
    return TensorType(attrs.shape, x.dtype)


def _resize(attrs: Resize, x: Array) -> Array:
    y = x if attrs.mode == "nearest" or x.dtype == np.float64 else x.astype(np.float32)
    way = Resampling(attrs.mode, attrs.coordinates, attrs.rounding, attrs.cubic)
    for axis, (old, new, scale) in enumerate(zip(x.shape, attrs.shape, attrs.scales, strict=True)):
        assert isinstance(new, int)
        if (old, scale or 1.0) == (new, 1.0):
            continue
        ratio = new / old if scale is None else scale
        place = places(way, old, new, ratio)
        assert place is not None
        parts = [np.take(y, at, axis) * _beside(y, axis, weight) for at, weight in neighbours(way, place, old, ratio)]
        y = np.sum(parts, axis=0, dtype=y.dtype) if len(parts) > 1 else parts[0]
    return np.asarray(y).astype(x.dtype)


def _beside(y: Array, axis: int, weight: Array) -> Array:
    """Weights along one axis, reshaped to broadcast against y and converted to its type."""
    return weight.reshape(-1, *(1,) * (y.ndim - 1 - axis)).astype(y.dtype)


@record
class Resampling:
    """The attributes of ONNX's Resize for an axis; `region` is that of a crop, relative to the extent.

    With `antialias`, where there are fewer elements than before, each is made of all that it stands for. With
    `exclude_outside`, what is not there has no weight; else the outermost element stands for it.
    """

    mode: str
    coordinates: str
    rounding: str
    cubic: float
    antialias: bool = False
    exclude_outside: bool = False


def places(
    way: Resampling, old: int, new: int, ratio: float, region: tuple[float, float] | None = None
) -> Array | None:
    """The coordinate of each index of the result along an axis of the operand; None for an unknown mode."""
    at = np.arange(new, dtype=np.float64)
    if way.coordinates == "tf_crop_and_resize" and region is not None:
        start, end = region
        if new > 1:
            return start * (old - 1) + at * (end - start) * (old - 1) / (new - 1)
        return at + 0.5 * (start + end) * (old - 1)
    if way.coordinates == "asymmetric":
        return at / ratio
    if way.coordinates == "align_corners":
        # By the extent before it was rounded down to an integer, as ONNX does.
        return at * (old - 1) / (ratio * old - 1) if ratio * old != 1 else at * 0
    if way.coordinates == "pytorch_half_pixel" and new <= 1:
        return at * 0
    if way.coordinates in ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric"):
        shift = old / 2 * (1 - new / (ratio * old)) if way.coordinates == "half_pixel_symmetric" else 0.0
        return shift + (at + 0.5) / ratio - 0.5
    return None


def neighbours(way: Resampling, place: Array, old: int, ratio: float) -> list[tuple[Array, Array]]:
    """The indices of the elements for each coordinate, with their weights."""
    if way.mode == "nearest":
        return [(np.clip(ROUNDINGS[way.rounding](place), 0, old - 1).astype(np.int64), np.ones_like(place))]
    reach, kernel = (2, _keys) if way.mode == "cubic" else (1, _tent)
    stretch = max(1.0, 1 / ratio) if way.antialias else 1.0
    first = np.floor(place - reach * stretch) + 1
    indices = [first + step for step in range(int(np.ceil(2 * reach * stretch)))]
    weights = [kernel(np.abs(place - at) / stretch, way.cubic) for at in indices]
    if way.exclude_outside:
        weights = [np.where((at >= 0) & (at < old), each, 0.0) for at, each in zip(indices, weights, strict=True)]
    if way.exclude_outside or way.antialias:
        total = np.sum(weights, axis=0)
        weights = [each / total for each in weights]
    return [(np.clip(at, 0, old - 1).astype(np.int64), each) for at, each in zip(indices, weights, strict=True)]


def _tent(distance: Array, _: float) -> Array:
    return np.asarray(np.maximum(0.0, 1 - distance))


def _keys(x: Array, a: float) -> Array:
    """Keys' kernel of cubic convolution."""
    near = (a + 2) * x**3 - (a + 3) * x**2 + 1
    return np.where(x <= 1, near, np.where(x < 2, a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a, 0.0))


class Scaling(CallBuilder):
    """Resizes tensors by interpolation."""

    @operator(_resize_type, _resize, Lowering("sampling.resize", said=("shape",)), attrs=Resize)
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
        """x resized to `shape` by "nearest", "linear" or "cubic" interpolation; coordinates as in ONNX."""
        given = (None,) * len(shape) if scales is None else tuple(scales)
        attrs = Resize(shape_of(shape, self._here()), given, mode, coordinates, rounding, cubic)
        return self.call("resize", x, attrs=attrs)
