"""Operators that look at images between their elements: their types."""

from __future__ import annotations

from tirlite.graph.op import Attrs, Op, Site, table
from tirlite.graph.types import TensorType
from tirlite.ir import i32, i64
from tirlite.record import record

MODES = ("nearest", "linear", "cubic")
PADDINGS = ("zeros", "border", "reflection")


@record
class GridSample(Attrs):
    """How elements are made of those near a place, what stands outside, and what -1 and 1 are.

    With `align_corners` these are the middles of the outermost elements, else their edges.
    """

    mode: str = "linear"
    padding: str = "zeros"
    align_corners: bool = False


@record
class RoiAlign(Attrs):
    """The bins of a region, how long a unit of its coordinates is, and how many samples along each axis a bin has.

    A `ratio` of 0 takes as many as a bin has elements. With `half_pixel` elements lie half a unit behind their index.
    A bin is the mean of its samples, or the `greatest` of them.
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


def _grid_sample(site: Site, attrs: GridSample) -> TensorType:
    x, grid = _image(site), site.tensor(1)
    for name, text, known in (("mode", attrs.mode, MODES), ("padding", attrs.padding, PADDINGS)):
        if text not in known:
            raise site.bad_attribute(f"{name} must be one of {', '.join(known)}")
    if not grid.dtype.is_float:
        raise site.wrong_type(f"places are of a float type, and are {grid.dtype}")
    if (
        grid.rank != x.rank
        or not site.is_equal(grid.shape[-1], x.rank - 2)
        or not site.is_equal(grid.shape[0], x.shape[0])
    ):
        raise site.mismatch(f"operand 1 must be [batch, *places, {x.rank - 2}]")
    return TensorType((*x.shape[:2], *grid.shape[1:-1]), x.dtype)


def _roi_align(site: Site, attrs: RoiAlign) -> TensorType:
    x, regions, batch = _image(site), site.tensor(1), site.tensor(2)
    if x.rank != 4:
        raise site.mismatch("operand 0 must have 4 axes")
    if regions.rank != 2 or not site.is_equal(regions.shape[1], 4) or regions.dtype != x.dtype:
        raise site.mismatch(f"operand 1 must be {x.dtype} with 4 numbers for each region")
    if batch.dtype not in (i32, i64) or batch.rank != 1 or not site.is_equal(batch.shape[0], regions.shape[0]):
        raise site.mismatch("operand 2 must have an index of i32 or i64 for each region")
    if attrs.height < 1 or attrs.width < 1 or attrs.ratio < 0:
        raise site.bad_attribute("there must be bins, and a ratio of 0 or more")
    return TensorType((regions.shape[0], x.shape[1], attrs.height, attrs.width), x.dtype)


SAMPLING = table(
    Op("grid_sample", _grid_sample, 2, 2, attrs=GridSample),
    Op("roi_align", _roi_align, 3, 3, attrs=RoiAlign),
)
