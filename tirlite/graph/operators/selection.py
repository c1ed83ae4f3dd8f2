"""Operators that order elements, or pick those that fulfil something."""

from __future__ import annotations

import numpy as np

from tirlite.graph.builder.calls import CallBuilder, Operand, operator
from tirlite.graph.expr import Call, TupleGetItem
from tirlite.graph.extents import Extent, size_of
from tirlite.graph.op import Array, Attrs, Count, Lowering, Site
from tirlite.graph.operators.operands import nonnegative
from tirlite.graph.types import TensorType, TupleType
from tirlite.ir import bool_, f32, i64
from tirlite.record import record
from tirlite.sizes import Proof, Size, prove_le


@record
class TopK(Attrs):
    """How many elements, along which axis, and whether the greatest or the least."""

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
    """What boxes are: centre and extents if `center`, else two corners; whether only some scores count.

    `count` is how many boxes there may be at most, of all batches and classes.
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
    """nan counts as the first of all; equals come by index."""
    assert isinstance(attrs.count, int)
    axis = attrs.axis % x.ndim
    if attrs.count > x.shape[axis]:
        raise ValueError(f"{attrs.count} elements are asked for along an axis of {x.shape[axis]}")
    # Reversed twice, so that a stable sort keeps the order of equals.
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


def _non_max_suppression(
    attrs: Suppression, boxes: Array, scores: Array, most: Array, overlap: Array, least: Array
) -> tuple[Array, Array]:
    assert isinstance(attrs.count, int)
    chosen = []
    for b, c in np.ndindex(*scores.shape[:2]):
        alive = scores[b, c] > least if attrs.scored else np.ones(scores.shape[2], bool)
        for _ in range(min(int(most), scores.shape[2])):
            if not alive.any():
                break
            best = int(np.flatnonzero(alive)[np.argmax(scores[b, c][alive])])
            chosen.append((b, c, best))
            alive[best] = False
            alive &= ~_overlaps(boxes[b], boxes[b, best], overlap, center=attrs.center)
    found = np.zeros((attrs.count, 3), np.int64)
    found[: len(chosen)] = np.array(chosen, np.int64).reshape(-1, 3)
    return found, np.array(len(chosen), np.int64)


def _overlaps(boxes: Array, one: Array, limit: Array, *, center: bool) -> Array:
    """Which boxes share more of their area with one than the limit."""
    (low, high), (first, last) = (_corners(each, center=center) for each in (boxes, one))
    shared = np.minimum(high, last) - np.maximum(low, first)
    common = shared[:, 0] * shared[:, 1]
    area, other = np.prod(high - low, -1), np.prod(last - first, -1)
    both = area + other - common
    has_area = (shared > 0).all(1) & (common > 0) & (area > 0) & (other > 0) & (both > 0)
    return np.asarray(has_area & (common / both > limit))


def _corners(boxes: Array, *, center: bool) -> tuple[Array, Array]:
    a, b = boxes[..., :2], boxes[..., 2:]
    if center:
        half = b / np.float32(2)
        return a - half, a + half
    return np.minimum(a, b), np.maximum(a, b)


class Selection(CallBuilder):
    """Picked elements and their indices, which are i64."""

    @operator(_topk_type, _topk, Lowering("order.topk", said=("count",)), attrs=TopK)
    def topk(
        self, x: Operand, count: Extent, axis: int = -1, *, largest: bool = True
    ) -> tuple[TupleGetItem, TupleGetItem]:
        """The first elements along an axis in order, and their indices as i64; equal ones by index."""
        call = self.call("topk", x, attrs=TopK(size_of(count, self._here()), axis, largest))
        return self.item(call, 0), self.item(call, 1)

    @operator(_nonzero_type, _nonzero, Lowering("order.nonzero", said=("count",)), attrs=Count)
    def nonzero(self, x: Operand, count: Extent) -> Call:
        """The indices of the `count` elements that are not zero, in order: a row for each axis; numpy.nonzero.

        A run stops where there are more or fewer.
        """
        return self.call("nonzero", x, attrs=Count(size_of(count, self._here())))

    @operator(_sort_rows_type, _sort_rows, "order.sort_rows")
    def sort_rows(self, x: Operand) -> tuple[TupleGetItem, TupleGetItem]:
        """The indices of the rows of a matrix in order, equal ones as they stand; and which are not as the one before.

        Elements count from left to right; nan stands behind all numbers, and equals itself.
        """
        call = self.call("sort_rows", x)
        return self.item(call, 0), self.item(call, 1)

    @operator(
        _non_max_suppression_type,
        _non_max_suppression,
        Lowering("suppression.non_max_suppression", said=("count",)),
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
        """The boxes that overlap none with a better score, as [batch, class, box], and how many there are.

        At most `most` of each class of a batch, in the order of their scores, those above `least` if `scored`; the
        result has `count` rows. Boxes `[batch, n, 4]` overlap where they share more than `overlap` of their area; they
        are two corners, or with `center` the centre, width and height. Scores are `[batch, classes, n]`.
        """
        attrs = Suppression(size_of(count, self._here()), center, scored)
        call = self.call("non_max_suppression", boxes, scores, most, overlap, least, attrs=attrs)
        return self.item(call, 0), self.item(call, 1)
