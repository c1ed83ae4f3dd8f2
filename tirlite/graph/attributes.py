"""Attributes that several operators have, or that graphs themselves make: those of `reshape`, `sizes` and their kin."""

from __future__ import annotations

from tirlite.graph.extents import Shape
from tirlite.graph.op import Attrs, NodeAttributes
from tirlite.ir import DType, i64
from tirlite.record import record
from tirlite.sizes import Size


@record
class Axis(Attrs):
    """The axis that the operator works along; negative ones count from the end."""

    axis: int = -1


def axis_of(node: NodeAttributes) -> Axis:
    """The attribute `axis` of a node, which is the first one where it is left out."""
    return Axis(node.axis("axis", 0))


@record
class Count(Attrs):
    """The number of elements of the result."""

    count: Size


@record
class Reshape(Attrs):
    """The extents of the result, all of them; `told` are extents that a run finds, and that must be what they are."""

    shape: Shape
    told: Shape = ()


@record
class Sizes(Attrs):
    """The elements of the result in order, its extents, and its element type."""

    elements: tuple[Size, ...]
    extents: Shape
    dtype: DType = i64
