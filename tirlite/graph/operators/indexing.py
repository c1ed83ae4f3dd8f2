"""Operators that gather or scatter elements by index, sort them, or select those that satisfy a condition."""

from __future__ import annotations

from typing import Any

import numpy as np

from tirlite.graph.builder.calls import CallBuilder, Operand, operator
from tirlite.graph.expr import Call, TupleGetItem
from tirlite.graph.extents import Extent, size_of
from tirlite.graph.op import Array, Attrs, Axis, Count, Lowering, Site, Spelling, axis_of
from tirlite.graph.operators.operands import has_shape, indices, nonnegative, one_of
from tirlite.graph.types import TensorType, TupleType
from tirlite.ir import bool_, f32, i64
from tirlite.record import record
from tirlite.sizes import Proof, Size, prove_eq, prove_le

REDUCTIONS = ("none", "add", "mul", "max", "min")


@record
class BatchDims(Attrs):
    """The number of leading axes that both operands share."""

    batch_dims: int = 0


@record
class Scatter(Attrs):
    """The axis of the indices, and how an update is combined with the element there.

    `reduction` is "none" (it is replaced), "add", "mul", "max" or "min".
    """

    axis: int = 0
    reduction: str = "none"


@record
class ScatterNd(Attrs):
    """How an update is combined with the element there; see Scatter."""

    reduction: str = "none"


@record
class OneHot(Attrs):
    """The number of classes, and the position of their axis in the result."""

    depth: Size
    axis: int = -1


def _gather_elements_type(site: Site, attrs: Axis) -> TensorType:
    x, places = site.tensor(0), indices(site, 1)
    _check_inside(site, attrs.axis, x, places)
    return TensorType(places.shape, x.dtype)


def _check_inside(site: Site, given: int, x: TensorType, indices: TensorType) -> None:
    """Raises GraphError if `indices` is larger than x along an axis other than the indexed one.

    If that depends on dims, the kernel checks it.
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


def _gather_nd_type(site: Site, attrs: BatchDims) -> TensorType:
    x, places = site.tensor(0), indices(site, 1)
    batch = attrs.batch_dims
    if not 0 <= batch < min(x.rank, places.rank):
        raise site.bad_attribute(f"there are no {batch} axes before those that count")
    if not all(map(site.is_equal, x.shape[:batch], places.shape[:batch])):
        raise site.mismatch(f"the first {batch} axes differ")
    depth = _depth(site, places, x.rank - batch)
    return TensorType(places.shape[:-1] + x.shape[batch + depth :], x.dtype)


def _check_scatter(site: Site, reduction: str, x: TensorType, updates: TensorType) -> None:
    one_of(site, "reduction", reduction, REDUCTIONS)
    if updates.dtype != x.dtype:
        raise site.wrong_type(f"operand 2 has elements {updates.dtype}, operand 0 {x.dtype}")
    if reduction != "none" and x.dtype.is_bool:
        raise site.wrong_type(f"elements of {x.dtype} have no `{reduction}`")


def _scatter_elements_type(site: Site, attrs: Scatter) -> TensorType:
    x, places, updates = site.tensor(0), indices(site, 1), site.tensor(2)
    _check_scatter(site, attrs.reduction, x, updates)
    _check_inside(site, attrs.axis, x, places)
    if not has_shape(site, updates, places.shape):
        raise site.mismatch("there must be as many updates as indices")
    return x


def _scatter_nd_type(site: Site, attrs: ScatterNd) -> TensorType:
    x, places, updates = site.tensor(0), indices(site, 1), site.tensor(2)
    _check_scatter(site, attrs.reduction, x, updates)
    wanted = places.shape[:-1] + x.shape[_depth(site, places, x.rank) :]
    if not has_shape(site, updates, wanted):
        raise site.mismatch(f"the updates must be {TensorType(wanted, x.dtype)}")
    return x


def _one_hot_type(site: Site, attrs: OneHot) -> TensorType:
    places, values = indices(site, 0), site.tensor(1)
    if values.rank != 1 or prove_eq(values.shape[0], 2) is Proof.NO:
        raise site.mismatch("operand 1 must have 2 elements: of all others, and of the class")
    axis = site.axis(attrs.axis, places.rank + 1)
    return TensorType((*places.shape[:axis], attrs.depth, *places.shape[axis:]), values.dtype)


_UFUNCS: dict[str, Any] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _along(indices: Array, axis: int) -> tuple[Any, ...]:
    where: list[Any] = list(np.indices(indices.shape, sparse=True))
    where[axis] = indices
    return tuple(where)


def _gather_elements(attrs: Axis, x: Array, indices: Array) -> Array:
    return np.asarray(x[_along(indices, attrs.axis % x.ndim)])


def _gather_nd(attrs: BatchDims, x: Array, indices: Array) -> Array:
    batch = attrs.batch_dims
    count = int(np.prod(x.shape[:batch]))
    rows, places = x.reshape(count, *x.shape[batch:]), indices.reshape(count, *indices.shape[batch:])
    made = [row[tuple(np.moveaxis(place, -1, 0))] for row, place in zip(rows, places, strict=True)]
    rest = indices.shape[batch:-1] + x.shape[batch + indices.shape[-1] :]
    return np.asarray(made, x.dtype).reshape((*x.shape[:batch], *rest))


def _scattered(x: Array, where: tuple[Any, ...], updates: Array, reduction: str) -> Array:
    y = x.copy()
    if reduction == "none":
        y[where] = updates
    else:
        _UFUNCS[reduction].at(y, where, updates)
    return y


def _scatter_elements(attrs: Scatter, x: Array, indices: Array, updates: Array) -> Array:
    return _scattered(x, _along(indices, attrs.axis % x.ndim), updates, attrs.reduction)


def _scatter_nd(attrs: ScatterNd, x: Array, indices: Array, updates: Array) -> Array:
    return _scattered(x, tuple(np.moveaxis(indices, -1, 0)), updates, attrs.reduction)


def _one_hot(attrs: OneHot, indices: Array, values: Array) -> Array:
    assert isinstance(attrs.depth, int)
    axis = attrs.axis % (indices.ndim + 1)
    places = np.where(indices < 0, indices + attrs.depth, indices)
    classes = np.arange(attrs.depth).reshape(-1, *(1,) * (indices.ndim - axis))
    return np.asarray(np.where(np.expand_dims(places, axis) == classes, values[1], values[0]))


class Indexing(CallBuilder):
    """Gathers and scatters. Indices are i32 or i64; negative ones count from the end of the axis."""

    @operator(
        _gather_elements_type,
        _gather_elements,
        "indexing.gather_elements",
        least=2,
        attrs=Axis,
        onnx=Spelling("GatherElements", axis_of),
    )
    def gather_elements(self, x: Operand, indices: Operand, axis: int = 0) -> Call:
        """For each index, the element at that index of `axis` and its own position elsewhere; numpy.take_along_axis."""
        return self.call("gather_elements", x, indices, attrs=Axis(axis))

    @operator(
        _gather_nd_type,
        _gather_nd,
        "indexing.gather_nd",
        least=2,
        attrs=BatchDims,
        onnx=Spelling("GatherND", lambda node: BatchDims(node.integer("batch_dims"))),
    )
    def gather_nd(self, x: Operand, indices: Operand, *, batch_dims: int = 0) -> Call:
        """x at the index tuples in the last axis of `indices`; the first `batch_dims` axes are shared batch axes."""
        return self.call("gather_nd", x, indices, attrs=BatchDims(batch_dims))

    @operator(_scatter_elements_type, _scatter_elements, "indexing.scatter_elements", least=3, attrs=Scatter)
    def scatter_elements(
        self, x: Operand, indices: Operand, updates: Operand, axis: int = 0, *, reduction: str = "none"
    ) -> Call:
        """x with the updates at their indices along an axis, stored or combined with the elements by `reduction`."""
        return self.call("scatter_elements", x, indices, updates, attrs=Scatter(axis, reduction))

    @operator(
        _scatter_nd_type,
        _scatter_nd,
        "indexing.scatter_nd",
        least=3,
        attrs=ScatterNd,
        onnx=Spelling("ScatterND", lambda node: ScatterNd(node.text("reduction", "none"))),
    )
    def scatter_nd(self, x: Operand, indices: Operand, updates: Operand, *, reduction: str = "none") -> Call:
        """x with the updates at the index tuples in the last axis of `indices`; combined by `reduction`."""
        return self.call("scatter_nd", x, indices, updates, attrs=ScatterNd(reduction))

    @operator(_one_hot_type, _one_hot, Lowering("arrange.one_hot", said=("depth",)), least=2, attrs=OneHot)
    def one_hot(self, indices: Operand, depth: Extent, values: Operand, *, axis: int = -1) -> Call:
        """Adds an axis of `depth` classes: values[1] at the class of each index, values[0] at all others."""
        return self.call("one_hot", indices, values, attrs=OneHot(size_of(depth, self._here()), axis))


@record
class TopK(Attrs):
    """The number of elements, the axis, and whether the greatest or the least ones."""

    count: Size
    axis: int = -1
    largest: bool = True


def _topk_type(site: Site, attrs: TopK) -> TupleType:
    x = site.tensor(0)
    axis = site.axis(attrs.axis, x.rank)
    if x.dtype.is_bool:
        raise site.wrong_type(f"the elements must be numbers, and are {x.dtype}")
    if prove_le(0, attrs.count) is Proof.NO or not site.is_most(attrs.count, x.shape[axis]):
        raise site.bad_attribute(f"axis {axis} has {x.shape[axis]} elements, and {attrs.count} are asked for")
    shape = (*x.shape[:axis], attrs.count, *x.shape[axis + 1 :])
    return TupleType((TensorType(shape, x.dtype), TensorType(shape, i64)))


@record
class Suppression(Attrs):
    """The format of boxes: centre and extents if `center`, else two corners; and whether there is a least score.

    `count` is the most boxes of all batches and classes together.
    """

    count: Size
    center: bool = False
    scored: bool = True


def _sort_rows_type(site: Site, attrs: Attrs) -> TupleType:
    x = site.tensor(0)
    if x.rank != 2:
        raise site.mismatch(f"the operand has {x.rank} axes, and must have 2")
    return TupleType((TensorType(x.shape[:1], i64), TensorType(x.shape[:1], bool_)))


def _non_max_suppression_type(site: Site, attrs: Suppression) -> TupleType:
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


def _nonzero_type(site: Site, attrs: Count) -> TensorType:
    x = site.tensor(0)
    nonnegative(site, "count", (attrs.count,))
    return TensorType((x.rank, attrs.count), i64)


def _topk(attrs: TopK, x: Array) -> tuple[Array, Array]:
    """nan comes first; equal elements are ordered by index."""
    assert isinstance(attrs.count, int)
    axis = attrs.axis % x.ndim
    if attrs.count > x.shape[axis]:
        raise ValueError(f"{attrs.count} elements are asked for along an axis of {x.shape[axis]}")
    # Reversed before and after the stable sort, so that equal elements stay in order of their indices.
    ordered = np.argsort(x, axis, kind="stable")
    if attrs.largest:
        flipped = np.argsort(np.flip(x, axis), axis, kind="stable")
        ordered = np.flip(x.shape[axis] - 1 - flipped, axis)
    elif x.dtype.kind == "f":
        first = np.argsort(~np.isnan(np.take_along_axis(x, ordered, axis)), axis, kind="stable")
        ordered = np.take_along_axis(ordered, first, axis)
    chosen = np.take(ordered, np.arange(attrs.count), axis)
    return np.take_along_axis(x, chosen, axis), chosen.astype(np.int64)


def _nonzero(attrs: Count, x: Array) -> Array:
    assert isinstance(attrs.count, int)
    found = np.array(np.nonzero(np.atleast_1d(x)), np.int64)[: x.ndim]
    if found.shape[1] != attrs.count and x.ndim:
        raise ValueError(f"{found.shape[1]} elements are not zero, and {attrs.count} were said to be")
    return found if x.ndim else np.zeros((0, attrs.count), np.int64)


def _sort_rows(attrs: Attrs, x: Array) -> tuple[Array, Array]:
    order = np.lexsort(x.T[::-1]) if x.shape[1] else np.arange(len(x))
    rows = x[order]
    differ = (rows[1:] != rows[:-1]) & ~((rows[1:] != rows[1:]) & (rows[:-1] != rows[:-1]))
    fresh = np.ones(len(x), bool)
    fresh[1:] = differ.any(1)
    return order.astype(np.int64), fresh


class Selection(CallBuilder):
    """Selects elements. Indices are i64."""

    @operator(_topk_type, _topk, Lowering("order.topk", said=("count",)), attrs=TopK)
    def topk(
        self, x: Operand, count: Extent, axis: int = -1, *, largest: bool = True
    ) -> tuple[TupleGetItem, TupleGetItem]:
        """The greatest or least elements along an axis, sorted, and their indices as i64; equal ones by index."""
        call = self.call("topk", x, attrs=TopK(size_of(count, self._here()), axis, largest))
        return self.item(call, 0), self.item(call, 1)

    @operator(_nonzero_type, _nonzero, Lowering("order.nonzero", said=("count",)), attrs=Count)
    def nonzero(self, x: Operand, count: Extent) -> Call:
        """The indices of the `count` nonzero elements, in order, one row per axis; as numpy.nonzero.

        A run with more or fewer nonzero elements raises an error.
        """
        return self.call("nonzero", x, attrs=Count(size_of(count, self._here())))

    @operator(_sort_rows_type, _sort_rows, "order.sort_rows")
    def sort_rows(self, x: Operand) -> tuple[TupleGetItem, TupleGetItem]:
        """The indices of a matrix's rows in sorted order (stable), and whether each differs from the row before.

        Rows compare lexicographically; nan sorts after all numbers and equals itself.
        """
        call = self.call("sort_rows", x)
        return self.item(call, 0), self.item(call, 1)

    @operator(
        _non_max_suppression_type,
        lowering=Lowering("suppression.non_max_suppression", said=("count",)),
        least=5,
        attrs=Suppression,
    )
    def non_max_suppression(
        self,
        boxes: Operand,
        scores: Operand,
        most: Operand,
        overlap: Operand,
        least: Operand,
        count: Extent,
        *,
        center: bool = False,
        scored: bool = True,
    ) -> tuple[TupleGetItem, TupleGetItem]:
        """The boxes that overlap no selected box with a better score, as rows [batch, class, box], and their number.

        Selects at most `most` boxes per class and batch item, by descending score; with `scored` only scores above
        `least`. The result has `count` rows. Boxes `[batch, n, 4]` are two corners, or with `center` centre, width and
        height; they overlap if their intersection over union exceeds `overlap`. Scores are `[batch, classes, n]`.
        """
        attrs = Suppression(size_of(count, self._here()), center, scored)
        call = self.call("non_max_suppression", boxes, scores, most, overlap, least, attrs=attrs)
        return self.item(call, 0), self.item(call, 1)
