"""The meanings of operators that make tensors of sizes and numbers."""

from __future__ import annotations

import numpy as np

from tirlite.graph.ops.creation import Count, Sizes
from tirlite.graph.reference.meaning import Array, Meaning


def _numbers(extents: tuple[object, ...]) -> tuple[int, ...]:
    return tuple(each for each in extents if isinstance(each, int))


def _sizes(attrs: Sizes) -> Array:
    return np.array(attrs.elements, attrs.dtype.numpy).reshape(_numbers(attrs.extents))


def _range(attrs: Count, start: Array, delta: Array) -> Array:
    assert isinstance(attrs.count, int)
    return np.asarray(start + np.arange(attrs.count).astype(start.dtype) * delta)


CREATION: dict[str, Meaning] = {"range": _range, "sizes": _sizes}
