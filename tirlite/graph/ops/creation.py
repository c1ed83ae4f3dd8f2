"""Operators that make tensors of sizes and numbers: their types."""

from __future__ import annotations

from tirlite.graph.extents import Shape
from tirlite.graph.op import Attrs, Op, Site, table
from tirlite.graph.types import TensorType
from tirlite.ir import DType, i64
from tirlite.record import record
from tirlite.sizes import Proof, Size, prove_le


@record
class Sizes(Attrs):
    """The elements of the result in order, its extents, and its element type."""

    elements: tuple[Size, ...]
    extents: Shape
    dtype: DType = i64


@record
class Count(Attrs):
    """The number of elements of the result."""

    count: Size


def _sizes(site: Site, attrs: Sizes) -> TensorType:
    if not attrs.dtype.is_integer:
        raise site.bad_attribute(f"sizes are integers, not {attrs.dtype}")
    made = TensorType(attrs.extents, attrs.dtype)
    if made.elements != len(attrs.elements):
        raise site.bad_attribute(f"{len(attrs.elements)} elements do not fill {made}")
    return made


def _range(site: Site, attrs: Count) -> TensorType:
    dtype = site.same_dtype()
    if not (dtype.is_integer or dtype.is_float):
        raise site.wrong_type(f"the elements must be numbers, and are {dtype}")
    if any(each.rank for each in site.tensors()):
        raise site.mismatch("start and step must have no axes")
    if prove_le(0, attrs.count) is Proof.NO:
        raise site.bad_attribute("count must not be negative")
    shape: Shape = (attrs.count,)
    return TensorType(shape, dtype)


CREATION = table(
    Op("sizes", _sizes, 0, 0, attrs=Sizes),
    Op("range", _range, 2, 2, attrs=Count),
)
