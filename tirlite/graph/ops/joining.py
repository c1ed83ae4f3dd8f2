"""Operators that join tensors, divide them, or pick elements by index: their types."""

from __future__ import annotations

from tirlite.graph.op import Attrs, Op, Site, table
from tirlite.graph.ops.normalization import Axis
from tirlite.graph.types import TensorType, TupleType
from tirlite.ir import i32, i64
from tirlite.record import record
from tirlite.sizes import Size


@record
class Split(Attrs):
    """The extents of the parts along an axis."""

    sizes: tuple[Size, ...]
    axis: int = 0


def _concat(site: Site, attrs: Axis) -> TensorType:
    dtype = site.same_dtype()
    first, *rest = site.tensors()
    axis = site.axis(attrs.axis, first.rank)
    total = first.shape[axis]
    for number, each in enumerate(rest, 1):
        if each.rank != first.rank:
            raise site.mismatch(f"operand {number} has {each.rank} axes, operand 0 {first.rank}")
        for other in range(first.rank):
            _check_equal(site, axis, other, first, each, number)
        total = total + each.shape[axis]
    return TensorType((*first.shape[:axis], total, *first.shape[axis + 1 :]), dtype)


def _check_equal(site: Site, axis: int, other: int, first: TensorType, each: TensorType, number: int) -> None:
    a, b = first.shape[other], each.shape[other]
    if other != axis and not site.is_equal(a, b):
        why = f"axis {other} is {a} in operand 0 and {b} in operand {number}"
        raise site.unequal(why, a, b)


def _split(site: Site, attrs: Split) -> TupleType:
    x = site.tensor(0)
    axis = site.axis(attrs.axis, x.rank)
    total: Size = 0
    for size in attrs.sizes:
        total = total + size
    if not attrs.sizes or not site.is_equal(total, x.shape[axis]):
        raise site.bad_attribute(f"the parts have {total} elements along axis {axis}, which has {x.shape[axis]}")
    parts = (TensorType((*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype) for size in attrs.sizes)
    return TupleType(tuple(parts))


def _gather(site: Site, attrs: Axis) -> TensorType:
    x, indices = site.tensor(0), site.tensor(1)
    if indices.dtype not in (i32, i64):
        raise site.wrong_type(f"indices must be i32 or i64, and are {indices.dtype}")
    axis = site.axis(attrs.axis, x.rank)
    return TensorType(x.shape[:axis] + indices.shape + x.shape[axis + 1 :], x.dtype)


JOINING = table(
    Op("concat", _concat, 1, None, attrs=Axis),
    Op("split", _split, attrs=Split),
    Op("gather", _gather, 2, 2, attrs=Axis),
)
