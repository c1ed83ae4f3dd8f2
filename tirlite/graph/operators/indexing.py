"""Operators that pick or put elements by index, one index for each."""

from __future__ import annotations

from typing import Any

import numpy as np

from tirlite.graph.builder.calls import CallBuilder, Operand, operator
from tirlite.graph.expr import Call
from tirlite.graph.extents import Extent, size_of
from tirlite.graph.op import Array, Attrs, Axis, Lowering, Site, Spelling, axis_of
from tirlite.graph.operators.operands import has_shape, indices, one_of
from tirlite.graph.types import TensorType
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


def _gather_elements_type(site: Site, attrs: Axis) -> TensorType:
    x, places = site.tensor(0), indices(site, 1)
    _check_inside(site, attrs.axis, x, places)
    return TensorType(places.shape, x.dtype)


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
    """Indices are i32 or i64; negative ones count from the end of the axis."""

    @operator(
        _gather_elements_type,
        _gather_elements,
        "indexing.gather_elements",
        least=2,
        attrs=Axis,
        onnx=Spelling("GatherElements", axis_of),
    )
    def gather_elements(self, x: Operand, indices: Operand, axis: int = 0) -> Call:
        """For each index the element there along an axis, at its own place along all others; numpy.take_along_axis."""
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
        """x at the tuples of indices that the last axis of `indices` holds, behind the axes that both have."""
        return self.call("gather_nd", x, indices, attrs=BatchDims(batch_dims))

    @operator(_scatter_elements_type, _scatter_elements, "indexing.scatter_elements", least=3, attrs=Scatter)
    def scatter_elements(
        self, x: Operand, indices: Operand, updates: Operand, axis: int = 0, *, reduction: str = "none"
    ) -> Call:
        """x with the updates at their indices along an axis; put there, or combined by "add", "mul", "max" or "min"."""
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
        """x with the updates at the tuples of indices that the last axis of `indices` holds."""
        return self.call("scatter_nd", x, indices, updates, attrs=ScatterNd(reduction))

    @operator(_one_hot_type, _one_hot, Lowering("arrange.one_hot", said=("depth",)), least=2, attrs=OneHot)
    def one_hot(self, indices: Operand, depth: Extent, values: Operand, *, axis: int = -1) -> Call:
        """Along a new axis of `depth` classes values[1] at the class of each index, values[0] at all others."""
        return self.call("one_hot", indices, values, attrs=OneHot(size_of(depth, self._here()), axis))
