"""The importer of convolutions whose windows are bent: each of their places is moved by an offset of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from tirlite.graph.expr import Expr
from tirlite.graph.onnx.computed import scalar
from tirlite.graph.onnx.node import Node, Unsupported
from tirlite.graph.onnx.translation import Translation
from tirlite.ir import i64
from tirlite.sizes import Size


class _Side(NamedTuple):
    """One spatial axis: places of the window, of the result and of the operand; and how they are laid."""

    window: int
    result: Size
    extent: Size
    stride: int
    dilation: int
    pad: int


def deformed_conv(t: Translation, node: Node) -> Expr:
    """The operand at the bent places of each window, between four elements, and the product with the weights."""
    x, weights, offsets = node.x(0), node.x(1), node.x(2)
    if node.rank != 4:
        raise Unsupported(f"its operand has {node.rank} axes, and must have 4")
    batch, channels, *_ = x.shape
    outputs, _, *windows = weights.shape
    if not all(isinstance(each, int) for each in (channels, outputs, *windows)):
        raise Unsupported("its weights depend on dims")
    groups, bends = node.integer("group", 1), node.integer("offset_group", 1)
    pads = node.integers("pads") or (0, 0, 0, 0)
    strides, dilations = (node.integers(name) or (1, 1) for name in ("strides", "dilations"))
    sides = [
        _Side(windows[k], offsets.shape[2 + k], x.shape[2 + k], strides[k], dilations[k], pads[k]) for k in range(2)
    ]
    count = windows[0] * windows[1]
    places = sides[0].result * sides[1].result
    apart = t.b.reshape(offsets, (batch, bends, *windows, 2, sides[0].result, sides[1].result))
    rows, columns = (t.b.add(_moved(t, apart, k), _straight(t, x, side, k)) for k, side in enumerate(sides))
    flat = (batch, bends, count * places)
    at = [t.b.reshape(each, flat) for each in (rows, columns)]
    values = _between(t, x, at, sides, bends)
    mask = node.maybe(4)
    if mask is not None:
        values = t.b.multiply(values, t.b.reshape(mask, (batch, bends, 1, count * places)))
    taken = t.b.reshape(values, (batch, groups, channels // groups * count, places))
    matrix = t.b.reshape(weights, (groups, outputs // groups, channels // groups * count))
    made = t.b.reshape(t.b.matmul(matrix, taken), (batch, outputs, sides[0].result, sides[1].result))
    bias = node.maybe(3)
    return made if bias is None else t.b.add(made, t.b.reshape(bias, (outputs, 1, 1)))


def _moved(t: Translation, apart: Expr, axis: int) -> Expr:
    """The offsets along one axis: [batch, bends, rows of the window, columns, rows of the result, columns]."""
    one = t.b.gather(apart, t.b.constant(np.int64(axis)), 4)
    return t.b.cast(one, apart.dtype)


def _straight(t: Translation, x: Expr, side: _Side, axis: int) -> Expr:
    """Where the places of the windows lie without offsets, in the shape of these."""
    zero, one = t.b.constant(np.int64(0)), t.b.constant(np.int64(1))
    inside = t.b.multiply(t.b.range(zero, one, side.window), side.dilation)
    start = t.b.subtract(t.b.multiply(t.b.range(zero, one, side.result), side.stride), side.pad)
    window = (side.window, 1, 1, 1) if axis == 0 else (side.window, 1, 1)
    result = (side.result, 1) if axis == 0 else (side.result,)
    return t.b.cast(t.b.add(t.b.reshape(inside, window), t.b.reshape(start, result)), x.dtype)


def _between(t: Translation, x: Expr, at: Sequence[Expr], sides: Sequence[_Side], bends: int) -> Expr:
    """The elements at places between four of them: [batch, bends, channels of each, places]."""
    batch, channels, *_ = x.shape
    extents = [scalar(t, side.extent) for side in sides]
    each = channels // bends
    planes = t.b.reshape(x, (batch, bends, each, sides[0].extent * sides[1].extent))
    low = [t.b.floor(place) for place in at]
    corners = []
    for corner in ((0, 0), (0, 1), (1, 0), (1, 1)):
        indices, shares, inside = [], [], []
        for axis, step in enumerate(corner):
            place = t.b.add(low[axis], float(step))
            last = t.b.cast(t.b.subtract(extents[axis], 1), x.dtype)
            here = t.b.logical_and(t.b.greater_equal(place, 0.0), t.b.less_equal(place, last))
            shares.append(t.b.subtract(1.0, t.b.abs(t.b.subtract(at[axis], place))))
            inside.append(here)
            indices.append(t.b.cast(t.b.where(here, place, 0.0), i64))
        index = t.b.unsqueeze(t.b.add(t.b.multiply(indices[0], extents[1]), indices[1]), 2)
        found = t.b.gather_elements(planes, t.b.broadcast_to(index, (batch, bends, each, index.shape[3])), 3)
        is_inside = t.b.logical_and(*inside)
        weight = t.b.unsqueeze(t.b.where(is_inside, t.b.multiply(*shares), 0.0), 2)
        corners.append(t.b.multiply(t.b.where(t.b.unsqueeze(is_inside, 2), found, 0.0), weight))
    return reduce(t.b.add, corners)
