"""The meanings of operators that put elements into another order or shape, join tensors or divide them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tirlite.graph.ops.arrangement import Broadcast, Pad, Reshape, Slice, Tile, Transpose
from tirlite.graph.ops.joining import Split
from tirlite.graph.ops.normalization import Axis
from tirlite.graph.reference.meaning import Array, Meaning


def _reshape(attrs: Reshape, x: Array) -> Array:
    return x.reshape(_numbers(attrs.shape))


def _assume(attrs: Reshape, x: Array) -> Array:
    return x.reshape(_numbers(attrs.shape))


def _transpose(attrs: Transpose, x: Array) -> Array:
    return x.transpose(attrs.axes)


def _broadcast_to(attrs: Broadcast, x: Array) -> Array:
    return np.broadcast_to(x, _numbers(attrs.shape))


def _tile(attrs: Tile, x: Array) -> Array:
    return np.tile(x, _numbers(attrs.repeats))


def _slice(attrs: Slice, x: Array) -> Array:
    ranges = zip(_numbers(attrs.starts), _numbers(attrs.sizes), attrs.steps, strict=True)
    return x[np.ix_(*(start + step * np.arange(size) for start, size, step in ranges))] if x.ndim else x


def _pad(attrs: Pad, x: Array) -> Array:
    widths = list(zip(_numbers(attrs.before), _numbers(attrs.after), strict=True))
    if attrs.mode == "constant":
        return np.pad(x, widths, constant_values=x.dtype.type(attrs.value))
    modes: Any = attrs.mode
    return np.pad(x, widths, mode=modes)


def _concat(attrs: Axis, *parts: Array) -> Array:
    return np.concatenate(parts, attrs.axis)


def _split(attrs: Split, x: Array) -> tuple[Array, ...]:
    ends = np.cumsum(_numbers(attrs.sizes))[:-1]
    return tuple(np.split(x, ends, attrs.axis))


def _gather(attrs: Axis, x: Array, indices: Array) -> Array:
    return np.take(x, indices, attrs.axis)


def _numbers(sizes: tuple[object, ...]) -> tuple[int, ...]:
    """Sizes that are integers, as all are once the dims are bound."""
    assert all(isinstance(size, int) for size in sizes)
    return tuple(size for size in sizes if isinstance(size, int))


ARRANGEMENT: dict[str, Meaning] = {
    "assume": _assume,
    "broadcast_to": _broadcast_to,
    "concat": _concat,
    "gather": _gather,
    "pad": _pad,
    "reshape": _reshape,
    "slice": _slice,
    "split": _split,
    "tile": _tile,
    "transpose": _transpose,
}
