"""Importers of com.microsoft for weights of few bits in blocks, each with a scale, and for experts, which have such."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tirlite.graph.expr import Expr
from tirlite.graph.extents import product
from tirlite.graph.onnx.node import Node, Unsupported
from tirlite.graph.onnx.translation import Importer, Translation
from tirlite.ir import u8


def _unpacked(t: Translation, packed: Expr, bits: int) -> Expr:
    """The integers in bytes along the last axis, the first one in the lowest bits."""
    if bits not in (2, 4, 8):
        raise Unsupported("it has weights that do not fill bytes")
    if bits == 8:
        return packed
    *before, count = packed.shape
    places = range(0, 8, bits)
    parts = [t.b.shift_right(packed, t.b.constant(np.uint8(place))) for place in places]
    joined = t.b.concat([t.b.unsqueeze(each, -1) for each in parts], -1)
    return t.b.reshape(t.b.bitwise_and(joined, (1 << bits) - 1), (*before, len(places) * count))


def _floats(
    t: Translation, whole: Expr, scales: Expr, zeros: Expr | float, size: int, order: Expr | None = None
) -> Expr:
    """What integers along the last axis stand for, by scale and point of a block of `size`, or of the one in `order`.

    Zero points may be more than there are blocks, where their bytes are not full.
    """
    *before, blocks = scales.shape

    def of_each(x: Expr) -> Expr:
        if order is not None:
            return t.b.gather(x, order, -1)
        wide = t.b.broadcast_to(t.b.unsqueeze(x, -1), (*before, blocks, size))
        return t.b.slice(t.b.reshape(wide, (*before, blocks * size)), [0], [whole.shape[-1]], [-1])

    point: Expr | float = zeros
    if isinstance(zeros, Expr):
        point = of_each(t.b.cast(t.b.slice(zeros, [0], [blocks], [-1]), scales.dtype))
    return t.b.multiply(t.b.subtract(t.b.cast(whole, scales.dtype), point), of_each(scales))


def _matmul_nbits(t: Translation, node: Node) -> Expr:
    """A row of weights for each column of the product. How exactly it is computed is free: it is, in floats."""
    node.integer("accuracy_level")
    x, scales, zeros = node.x(0), node.x(2), node.maybe(3)
    k, n, bits, size = (node.integer(name) for name in ("K", "N", "bits", "block_size"))
    blocks = -(-k // size)
    whole = _unpacked(t, t.b.reshape(node.x(1), (n, blocks * size * bits // 8)), bits)
    if zeros is not None:
        zeros = (
            _unpacked(t, t.b.reshape(zeros, (n, -1)), bits) if zeros.dtype == u8 else t.b.reshape(zeros, (n, blocks))
        )
    points = float(1 << (bits - 1)) if zeros is None else zeros
    whole = t.b.slice(whole, [0], [k], [1])
    rows = _floats(t, whole, t.b.reshape(scales, (n, blocks)), points, size, node.maybe(4))
    total = t.b.matmul(x, t.b.transpose(t.b.cast(rows, x.dtype)))
    bias = node.maybe(5)
    return total if bias is None else t.b.add(total, bias)


def _gather_blocks(t: Translation, node: Node) -> Expr:
    """Rows of a table, with blocks along them, as floats."""
    bits, size, rank = node.integer("bits", 4), node.integer("block_size", 128), node.rank
    axis, along = node.axis("gather_axis"), node.axis("quantize_axis", 1)
    if axis == along or along != rank - 1:
        raise Unsupported("its blocks do not lie along the last axis, or rows are taken along them")
    is_packed = node.kind(0) is None

    def taken(number: int) -> Expr:
        found = t.b.gather(node.x(number), node.x(1), axis)
        return found if number == 2 or not is_packed else _unpacked(t, found, bits)

    at_rest = float(1 << (bits - 1)) if is_packed else 0.0
    return _floats(t, taken(0), taken(2), taken(3) if node.has(3) else at_rest, size)


def _experts(t: Translation, node: Node) -> Expr:
    """A mixture of experts: two or three products with weights of each, [experts, out, in], and biases."""
    numbers = ((2, 3), (4, 5), (6, 7))
    return _mixed(t, node, [(node.maybe(weight), node.maybe(bias)) for weight, bias in numbers])


def _quantized_experts(t: Translation, node: Node) -> Expr:
    """The weights are integers of few bits, by scales for each row, or for each block of one."""
    node.integer("accuracy_level")
    bits, size = node.integer("expert_weight_bits", 4), node.integer("block_size")
    layers: list[tuple[Expr | None, Expr | None]] = []
    for weight, point in ((2, 11), (5, 12), (8, 13)):
        packed, scales, zeros = node.maybe(weight), node.maybe(weight + 1), node.maybe(point)
        floats: Expr | None = None
        if packed is not None and scales is not None:
            whole = _unpacked(t, packed, bits)
            if not size:
                scales = t.b.unsqueeze(scales, -1)
                zeros = None if zeros is None else t.b.unsqueeze(zeros, -1)
            elif zeros is not None:
                zeros = _unpacked(t, zeros, bits)
            extent = size or whole.shape[-1]
            if not isinstance(extent, int):
                raise Unsupported("its width is a dim")
            points = float(1 << (bits - 1)) if zeros is None else zeros
            floats = t.b.cast(_floats(t, whole, scales, points, extent), node.dtype)
        layers.append((floats, node.maybe(weight + 2)))
    return _mixed(t, node, layers)


def _mixed(t: Translation, node: Node, layers: list[tuple[Expr | None, Expr | None]]) -> Expr:
    """What all experts make of each row, by the shares of the `k` that its scores choose."""
    x, scores, k = node.first, node.x(1), node.integer("k", 1)
    if node.flag("use_sparse_mixer"):
        raise Unsupported("it chooses by a sparse mixer")
    rows = t.b.reshape(x, (product(x.shape[:-1]), x.shape[-1]))
    shares: Expr
    shares, chosen = t.b.topk(t.b.softmax(scores), k, 1)
    if node.flag("normalize_routing_weights"):
        shares = t.b.divide(shares, t.b.reduce_sum(shares, 1, keepdims=True))
    experts = t.b.range(np.int64(0), np.int64(1), scores.shape[1])
    is_chosen = t.b.equal(t.b.unsqueeze(chosen, -1), experts)
    weights = t.b.reduce_sum(t.b.where(is_chosen, t.b.unsqueeze(shares, -1), 0.0), 1)

    def product_of(given: Expr, number: int) -> Expr | None:
        weight, bias = layers[number]
        if weight is None:
            return None
        total = t.b.matmul(given, t.b.transpose(weight, (0, 2, 1)))
        return total if bias is None else t.b.add(total, t.b.unsqueeze(bias, 1))

    inner = product_of(rows, 0)
    assert inner is not None
    made = product_of(_activated(t, node, inner, product_of(rows, 2)), 1)
    assert made is not None
    total = t.b.reduce_sum(t.b.multiply(made, t.b.unsqueeze(t.b.transpose(weights), -1)), 0)
    return t.b.reshape(total, x.shape)


def _activated(t: Translation, node: Node, x: Expr, other: Expr | None) -> Expr:
    kind = node.text("activation_type", "relu")
    if kind != "swiglu":
        if kind not in ("relu", "gelu", "silu", "identity"):
            raise Unsupported(f"its activation is {kind}")
        made = t.b.call(kind, x)
        return made if other is None else t.b.multiply(made, other)
    half = x.shape[-1] // 2
    gate: Expr
    linear: Expr
    how, limit = node.integer("swiglu_fusion"), node.number("swiglu_limit", float("inf"))
    if how == 1:
        gate, linear = (t.b.slice(x, [place], [None], [-1], [2]) for place in range(2))
    elif how == 2:
        gate, linear = t.b.split(x, [half, half], -1)
    elif other is not None:
        gate, linear = x, other
    else:
        raise Unsupported("its gates have no weights")
    if np.isfinite(limit):
        gate, linear = t.b.minimum(gate, limit), t.b.clip(linear, -limit, limit)
    alpha, beta = node.number("activation_alpha", 1.0), node.number("activation_beta", 0.0)
    return t.b.multiply(t.b.multiply(gate, t.b.sigmoid(t.b.multiply(gate, alpha))), t.b.add(linear, beta))


BLOCKS: Mapping[str, Importer] = {
    "MatMulNBits": _matmul_nbits,
    "GatherBlockQuantized": _gather_blocks,
    "MoE": _experts,
    "QMoE": _quantized_experts,
}
