"""The builder's methods for operators that pick or put elements by index, order them, or make them."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.graph.builder.calls import CallBuilder, Operand
from tirlite.graph.expr import Call, TupleGetItem
from tirlite.graph.extents import Extent, shape_of, size_of
from tirlite.graph.ops import Axis, BatchDims, Count, OneHot, Scatter, ScatterNd, Sizes, Suppression, TopK
from tirlite.ir import DType, i64


class IndexingBuilder(CallBuilder):
    """Indices are i32 or i64; negative ones count from the end of the axis."""

    def gather_elements(self, x: Operand, indices: Operand, axis: int = 0) -> Call:
        """For each index the element there along an axis, at its own place along all others; numpy.take_along_axis."""
        return self.call("gather_elements", x, indices, attrs=Axis(axis))

    def gather_nd(self, x: Operand, indices: Operand, *, batch_dims: int = 0) -> Call:
        """x at the tuples of indices that the last axis of `indices` holds, behind the axes that both have."""
        return self.call("gather_nd", x, indices, attrs=BatchDims(batch_dims))

    def scatter_elements(
        self, x: Operand, indices: Operand, updates: Operand, axis: int = 0, *, reduction: str = "none"
    ) -> Call:
        """x with the updates at their indices along an axis; put there, or combined by "add", "mul", "max" or "min"."""
        return self.call("scatter_elements", x, indices, updates, attrs=Scatter(axis, reduction))

    def scatter_nd(self, x: Operand, indices: Operand, updates: Operand, *, reduction: str = "none") -> Call:
        """x with the updates at the tuples of indices that the last axis of `indices` holds."""
        return self.call("scatter_nd", x, indices, updates, attrs=ScatterNd(reduction))

    def one_hot(self, indices: Operand, depth: Extent, values: Operand, *, axis: int = -1) -> Call:
        """Along a new axis of `depth` classes values[1] at the class of each index, values[0] at all others."""
        return self.call("one_hot", indices, values, attrs=OneHot(size_of(depth, self._here()), axis))

    def topk(
        self, x: Operand, count: Extent, axis: int = -1, *, largest: bool = True
    ) -> tuple[TupleGetItem, TupleGetItem]:
        """The first elements along an axis in order, and their indices as i64; equal ones by index."""
        call = self.call("topk", x, attrs=TopK(size_of(count, self._here()), axis, largest))
        return self.item(call, 0), self.item(call, 1)

    def nonzero(self, x: Operand, count: Extent) -> Call:
        """The indices of the `count` elements that are not zero, in order: a row for each axis; numpy.nonzero.

        A run stops where there are more or fewer.
        """
        return self.call("nonzero", x, attrs=Count(size_of(count, self._here())))

    def sort_rows(self, x: Operand) -> tuple[TupleGetItem, TupleGetItem]:
        """The indices of the rows of a matrix in order, equal ones as they stand; and which are not as the one before.

        Elements count from left to right; nan stands behind all numbers, and equals itself.
        """
        call = self.call("sort_rows", x)
        return self.item(call, 0), self.item(call, 1)

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

    def range(self, start: Operand, delta: Operand, count: Extent) -> Call:
        """`start + i * delta` for i below `count`."""
        return self.call("range", start, delta, attrs=Count(size_of(count, self._here())))

    def sizes(self, elements: Sequence[Extent], dtype: DType = i64) -> Call:
        """A vector of integers that are made of dims."""
        found = shape_of(elements, self._here())
        return self.call("sizes", attrs=Sizes(found, (len(found),), dtype))
