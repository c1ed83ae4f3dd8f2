"""Operators that make tensors of sizes and numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tirlite.graph.builder.calls import CallBuilder, Operand, operator
from tirlite.graph.expr import Call
from tirlite.graph.extents import Extent, shape_of, size_of
from tirlite.graph.op import Array, Count, Lowering, Site, Sizes
from tirlite.graph.operators.arrangement import numbers
from tirlite.graph.operators.operands import NUMBERS, nonnegative
from tirlite.graph.types import TensorType
from tirlite.ir import DType, i64


def _sizes_type(site: Site, attrs: Sizes) -> TensorType:
    if not attrs.dtype.is_integer:
        raise site.bad_attribute(f"sizes are integers, not {attrs.dtype}")
    made = TensorType(attrs.extents, attrs.dtype)
    if made.elements != len(attrs.elements):
        raise site.bad_attribute(f"{len(attrs.elements)} elements do not fill {made}")
    return made


def _range_type(site: Site, attrs: Count) -> TensorType:
    dtype = NUMBERS.shared(site)
    if any(each.rank for each in site.tensors()):
        raise site.mismatch("start and step must have no axes")
    nonnegative(site, "count", (attrs.count,))
    return TensorType((attrs.count,), dtype)


def _sizes(attrs: Sizes) -> Array:
    return np.array(attrs.elements, attrs.dtype.numpy).reshape(numbers(attrs.extents))


def _range(attrs: Count, start: Array, delta: Array) -> Array:
    assert isinstance(attrs.count, int)
    return np.asarray(start + np.arange(attrs.count).astype(start.dtype) * delta)


class Creation(CallBuilder):
    """Tensors that are made of no others."""

    @operator(_range_type, _range, Lowering("arrange.range_", said=("count",)), least=2, attrs=Count)
    def range(self, start: Operand, delta: Operand, count: Extent) -> Call:
        """`start + i * delta` for i below `count`."""
        return self.call("range", start, delta, attrs=Count(size_of(count, self._here())))

    @operator(_sizes_type, _sizes, least=0, attrs=Sizes)
    def sizes(self, elements: Sequence[Extent], dtype: DType = i64) -> Call:
        """A vector of integers that are made of dims."""
        found = shape_of(elements, self._here())
        return self.call("sizes", attrs=Sizes(found, (len(found),), dtype))
