"""The builder's methods for operators that look at images between their elements."""

from __future__ import annotations

from tirlite.graph.builder.calls import CallBuilder, Operand
from tirlite.graph.expr import Call
from tirlite.graph.ops import GridSample, RoiAlign


class SamplingBuilder(CallBuilder):
    """Images are `[batch, channels, *spatial]`."""

    def grid_sample(
        self, x: Operand, grid: Operand, *, mode: str = "linear", padding: str = "zeros", align_corners: bool = False
    ) -> Call:
        """x at the places that the last axis of `grid` holds, from -1 to 1 along each axis, the last axis of x first.

        `mode` is "nearest", "linear" or "cubic"; outside there are "zeros", the "border", or a "reflection".
        """
        return self.call("grid_sample", x, grid, attrs=GridSample(mode, padding, align_corners))

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
        """The means in the bins of regions, (left, top, right, bottom) each, of the images that `batch` names.

        A bin has `ratio` samples along each axis, or as many as it has elements; or it is the `greatest` of them.
        """
        attrs = RoiAlign(*bins, scale, ratio, half_pixel, greatest)
        return self.call("roi_align", x, regions, batch, attrs=attrs)
