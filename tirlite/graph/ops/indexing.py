"""Operators that pick or put elements by index, one index for each, and that order them: their types."""

from __future__ import annotations

from tirlite.graph.op import Attrs, Op, Site, table
from tirlite.graph.ops.creation import Count
from tirlite.graph.ops.normalization import Axis
from tirlite.graph.types import TensorType, TupleType
from tirlite.ir import bool_, f32, i32, i64
from tirlite.record import record
from tirlite.sizes import Proof, Size, prove_eq, prove_le

REDUCTIONS = ("none", "add", "mul", "max", "min")


@record
class BatchDims(Attrs):
    """How many axes both operands have in common before the indices count."""

    batch_dims: int = 0


@record
class Scatter(Attrs):
    """The axis that indices count along, and what is done with the element that stands there already.

    `reduction` is "none" (it is replaced), "add", "mul", "max" or "min".
    """

    axis: int = 0
    reduction: str = "none"


@record
class ScatterNd(Attrs):
    """What is done with the element that stands there already; see Scatter."""

    reduction: str = "none"


@record
class OneHot(Attrs):
    """The number of classes, and the place of their axis in the result."""

    depth: Size
    axis: int = -1


@record
class TopK(Attrs):
    """How many elements, along which axis, and whether the greatest or the least."""

    count: Size
    axis: int = -1
    largest: bool = True


def _indices(site: Site, number: int) -> TensorType:
    found = site.tensor(number)
    if found.dtype not in (i32, i64):
        raise site.wrong_type(f"indices must be i32 or i64, and are {found.dtype}")
    return found


def _gather_elements(site: Site, attrs: Axis) -> TensorType:
    x, indices = site.tensor(0), _indices(site, 1)
    _check_inside(site, attrs.axis, x, indices)
    return TensorType(indices.shape, x.dtype)


def _check_inside(site: Site, given: int, x: TensorType, indices: TensorType) -> None:
    """Raises GraphError where the indices reach beyond x along an axis that they do not count.

    Where that depends on dims, the kernel checks it.
    """
    if indices.rank != x.rank:
        raise site.mismatch(f"operand 1 has {indices.rank} axes, operand 0 {x.rank}")
    axis = site.axis(given, x.rank)
    for other, (extent, limit) in enumerate(zip(indices.shape, x.shape, strict=True)):
        if other != axis and prove_le(extent, limit) is Proof.NO:
            raise site.mismatch(f"axis {other} is {limit} in operand 0 and {extent} in operand 1")


def _depth(site: Site, indices: TensorType, most: int) -> int:
    depth = indices.shape[-1] if indices.rank else None
    if not isinstance(depth, int) or not 1 <= depth <= most:
        raise site.mismatch(f"the last axis of the indices must have an extent from 1 to {most}")
    return depth


def _gather_nd(site: Site, attrs: BatchDims) -> TensorType:
    x, indices = site.tensor(0), _indices(site, 1)
    batch = attrs.batch_dims
    if not 0 <= batch < min(x.rank, indices.rank):
        raise site.bad_attribute(f"there are no {batch} axes before those that count")
    if not all(map(site.is_equal, x.shape[:batch], indices.shape[:batch])):
        raise site.mismatch(f"the first {batch} axes differ")
    depth = _depth(site, indices, x.rank - batch)
    return TensorType(indices.shape[:-1] + x.shape[batch + depth :], x.dtype)


def _check_scatter(site: Site, reduction: str, x: TensorType, updates: TensorType) -> None:
    if reduction not in REDUCTIONS:
        raise site.bad_attribute(f"reduction must be one of {', '.join(REDUCTIONS)}")
    if updates.dtype != x.dtype:
        raise site.wrong_type(f"operand 2 has elements {updates.dtype}, operand 0 {x.dtype}")
    if reduction != "none" and x.dtype.is_bool:
        raise site.wrong_type(f"elements of {x.dtype} have no `{reduction}`")


def _scatter_elements(site: Site, attrs: Scatter) -> TensorType:
    x, indices, updates = site.tensor(0), _indices(site, 1), site.tensor(2)
    _check_scatter(site, attrs.reduction, x, updates)
    _check_inside(site, attrs.axis, x, indices)
    if updates.rank != indices.rank or not all(map(site.is_equal, updates.shape, indices.shape)):
        raise site.mismatch("there must be as many updates as indices")
    return x


def _scatter_nd(site: Site, attrs: ScatterNd) -> TensorType:
    x, indices, updates = site.tensor(0), _indices(site, 1), site.tensor(2)
    _check_scatter(site, attrs.reduction, x, updates)
    wanted = indices.shape[:-1] + x.shape[_depth(site, indices, x.rank) :]
    if updates.rank != len(wanted) or not all(map(site.is_equal, updates.shape, wanted)):
        raise site.mismatch(f"the updates must be {TensorType(wanted, x.dtype)}")
    return x


def _one_hot(site: Site, attrs: OneHot) -> TensorType:
    indices, values = _indices(site, 0), site.tensor(1)
    if values.rank != 1 or prove_eq(values.shape[0], 2) is Proof.NO:
        raise site.mismatch("operand 1 must have 2 elements: of all others, and of the class")
    axis = site.axis(attrs.axis, indices.rank + 1)
    return TensorType((*indices.shape[:axis], attrs.depth, *indices.shape[axis:]), values.dtype)


def _topk(site: Site, attrs: TopK) -> TupleType:
    x = site.tensor(0)
    axis = site.axis(attrs.axis, x.rank)
    if x.dtype.is_bool:
        raise site.wrong_type(f"the elements must be numbers, and are {x.dtype}")
    if prove_le(0, attrs.count) is Proof.NO or prove_le(attrs.count, x.shape[axis]) is Proof.NO:
        raise site.bad_attribute(f"axis {axis} has {x.shape[axis]} elements, and {attrs.count} are asked for")
    shape = (*x.shape[:axis], attrs.count, *x.shape[axis + 1 :])
    return TupleType((TensorType(shape, x.dtype), TensorType(shape, i64)))


@record
class Suppression(Attrs):
    """What boxes are: centre and extents if `center`, else two corners; whether only some scores count.

    `count` is how many boxes there may be at most, of all batches and classes.
    """

    count: Size
    center: bool = False
    scored: bool = True


def _sort_rows(site: Site, attrs: Attrs) -> TupleType:
    x = site.tensor(0)
    if x.rank != 2:
        raise site.mismatch(f"the operand has {x.rank} axes, and must have 2")
    return TupleType((TensorType(x.shape[:1], i64), TensorType(x.shape[:1], bool_)))


def _non_max_suppression(site: Site, attrs: Suppression) -> TupleType:
    boxes, scores, most, *limits = site.tensors()
    if (boxes.rank, scores.rank) != (3, 3) or not site.is_equal(boxes.shape[2], 4):
        raise site.mismatch("boxes must be [batch, n, 4], and scores [batch, classes, n]")
    for a, b in ((boxes.shape[0], scores.shape[0]), (boxes.shape[1], scores.shape[2])):
        if not site.is_equal(a, b):
            raise site.unequal(f"boxes are {boxes}, scores {scores}", a, b)
    if most.dtype != i64 or any(each.dtype != f32 for each in (boxes, scores, *limits)):
        raise site.wrong_type("boxes, scores and limits must be f32, and the greatest number i64")
    if any(each.rank for each in (most, *limits)):
        raise site.mismatch("the limits must have no axes")
    return TupleType((TensorType((attrs.count, 3), i64), TensorType((), i64)))


def _nonzero(site: Site, attrs: Count) -> TensorType:
    x = site.tensor(0)
    if prove_le(0, attrs.count) is Proof.NO:
        raise site.bad_attribute("count must not be negative")
    return TensorType((x.rank, attrs.count), i64)


INDEXING = table(
    Op("nonzero", _nonzero, attrs=Count),
    Op("sort_rows", _sort_rows),
    Op("non_max_suppression", _non_max_suppression, 5, 5, attrs=Suppression),
    Op("gather_elements", _gather_elements, 2, 2, attrs=Axis),
    Op("gather_nd", _gather_nd, 2, 2, attrs=BatchDims),
    Op("scatter_elements", _scatter_elements, 3, 3, attrs=Scatter),
    Op("scatter_nd", _scatter_nd, 3, 3, attrs=ScatterNd),
    Op("one_hot", _one_hot, 2, 2, attrs=OneHot),
    Op("topk", _topk, attrs=TopK),
)
