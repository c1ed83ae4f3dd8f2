"""Importers of com.microsoft for language models: attention, block-quantized weights, and mixtures of experts.

Most attention operators are rewritten as the standard's Attention.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tirlite.graph.expr import Expr
from tirlite.graph.extents import product
from tirlite.graph.onnx.computed import numbers, scalar
from tirlite.graph.onnx.importers.microsoft import scaled, zeros_of
from tirlite.graph.onnx.node import OnnxNode, Unsupported
from tirlite.graph.onnx.translation import Importer, Result, Translation
from tirlite.ir import f32, i64, u8
from tirlite.sizes import Size, maximum


def _rotary_embedding(t: Translation, node: OnnxNode) -> list[Result]:
    x, positions, cosines, sines = node.all()
    if node.flag("is_packed_batching") or node.number("scale", 1.0) != 1.0:
        raise Unsupported("its batches are packed, or it is scaled")
    if positions.tensor.rank == 1:  # the first position, shared by all rows
        first = t.b.gather(positions, np.int64(0), 0)
        positions = t.b.broadcast_to(t.b.add(first, numbers(t, x.shape[-2])), (x.shape[0], x.shape[-2]))
    kept = {name: node.integer(name) for name in ("interleaved", "num_heads", "rotary_embedding_dim")}
    if x.tensor.rank == 3 and not kept["num_heads"]:
        kept["num_heads"] = _number(x.shape[2]) // (2 * _number(cosines.shape[1]))
    return t.standard(node, "RotaryEmbedding", (x, cosines, sines, positions), kept)


def _number(extent: object) -> int:
    if not isinstance(extent, int):
        raise Unsupported("its width is a dim")
    return extent


def _attention(t: Translation, node: OnnxNode) -> Sequence[Result]:
    """Attention whose queries, keys and values come from one product; their widths may differ."""
    total = t.b.matmul(node.x(0), node.x(1))
    if node.has(2):
        total = t.b.add(total, node.x(2))
    return _of_one(t, node, total, node.maybe(3), node.maybe(4), node.maybe(5))


def _quantized_attention(t: Translation, node: OnnxNode) -> Sequence[Result]:
    """As `_attention`, with a product of quantized integers."""
    x, weight, bias, *scales = (node.x(number) for number in range(5))
    return _of_one(t, node, scaled(t, (x, weight), zeros_of(t, node, 6, 7), scales, bias), node.maybe(5), node.maybe(8))


def _of_one(
    t: Translation, node: OnnxNode, total: Expr, given: Expr | None, past: Expr | None, bias: Expr | None = None
) -> Sequence[Result]:
    widths = node.integers("qkv_hidden_sizes") or (_number(total.shape[2]) // 3,) * 3
    query, key, value = t.b.split(total, list(widths), 2)
    ends = [None, None] if past is None else [t.b.gather(past, np.int64(number), 0) for number in range(2)]
    mask = _filtered(t, node, given, key.shape[1])
    made, *present = _attended(t, node, query, key, value, _summed(t, mask, bias), ends)
    both = [t.b.unsqueeze(each, 0) for each in present if isinstance(each, Expr)]
    return [made, t.b.concat(both, 0) if both and node.wants(1) else None]


def _multi_head_attention(t: Translation, node: OnnxNode) -> Sequence[Result]:
    query, key, value = (node.maybe(number) for number in range(3))
    if query is None or key is None or value is None or query.tensor.rank != 3:
        raise Unsupported("its queries, keys and values are packed in one operand")
    if (bias := node.maybe(3)) is not None:
        parts = [query.shape[2], query.shape[2], bias.shape[0] - 2 * query.shape[2]]
        shifts = t.b.split(bias, parts, 0)
        query, key, value = (
            t.b.add(x, shift) if x.tensor.rank == 3 else x for x, shift in zip((query, key, value), shifts, strict=True)
        )
    mask = _filtered(t, node, node.maybe(4), key.shape[-2])
    return _attended(t, node, query, key, value, _summed(t, mask, node.maybe(5)), [node.maybe(6), node.maybe(7)])


def _grouped_query_attention(t: Translation, node: OnnxNode) -> Sequence[Result]:
    """Attention whose query heads share key heads in groups, with a key and value cache of its own length per batch."""
    if node.wants(3) or not node.flag("causal", 1):
        raise Unsupported("it gives its scores, or is not causal")
    b, counts = t.b, [node.integer(name) for name in ("num_heads", "kv_num_heads", "kv_num_heads")]
    heads, groups = counts[:2]
    query, all_tokens = node.x(0), node.x(6)
    batch, steps = query.shape[:2]
    size = _number(query.shape[2]) // (heads if node.has(1) else heads + 2 * groups)
    packed = [query, node.maybe(1), node.maybe(2)] if node.has(1) else b.split(query, [n * size for n in counts], 2)
    apart: list[Expr] = [
        b.transpose(b.reshape(each, (batch, steps, count, size)), (0, 2, 1, 3))
        for each, count in zip(packed, counts, strict=True)
        if each is not None
    ]
    query, key, value = apart
    ends = b.add(b.reshape(b.cast(node.x(5), i64), (batch, 1)), 1)
    begins = b.maximum(b.subtract(ends, scalar(t, steps)), 0)
    own = b.add(begins, numbers(t, steps))
    if node.flag("do_rotary"):
        query, key = (_rotated(t, node, each, node.maybe(9) or own) for each in (query, key))
    keys, values = (
        _behind(t, all_tokens, past, new, begins) for past, new in ((node.maybe(3), key), (node.maybe(4), value))
    )
    length = keys.shape[2]
    rows = b.reshape(query, (batch, groups, heads // groups * steps, size))
    scores: Expr = b.reshape(b.matmul(rows, b.transpose(keys, (0, 1, 3, 2))), (batch, heads, steps, length))
    scores = b.multiply(scores, node.number("scale", 0.0) or size**-0.5)
    if cap := node.number("softcap", 0.0):
        scores = b.multiply(b.tanh(b.divide(scores, cap)), cap)
    if (bias := node.maybe(10)) is not None:
        scores = b.add(scores, bias)
    # Padding queries after a short prompt attend to the same keys as its last token.
    last, places = b.unsqueeze(b.minimum(own, b.subtract(ends, 1)), 2), b.unsqueeze(numbers(t, length), (0, 1))
    seen = b.less_equal(places, last)
    if (window := node.integer("local_window_size", -1)) >= 0:
        seen = b.logical_and(seen, b.greater(places, b.subtract(last, window)))
    scores = b.where(b.unsqueeze(seen, 1), scores, float(np.finfo(np.float16).min))
    if (sink := node.maybe(11)) is not None or node.flag("smooth_softmax"):
        # An attention sink: a score that takes part in the softmax, but belongs to no key.
        last = b.cast(b.constant(0.0), query.dtype) if sink is None else b.reshape(sink, (heads, 1, 1))
        scores = b.softmax(b.concat([scores, b.broadcast_to(last, (batch, heads, steps, 1))], 3))
        scores = b.slice(scores, [0], [length], [3])
    else:
        scores = b.softmax(scores)
    shares = b.reshape(scores, (batch, groups, heads // groups * steps, length))
    made = b.transpose(b.reshape(b.matmul(shares, values), (batch, heads, steps, size)), (0, 2, 1, 3))
    return [b.reshape(made, (batch, steps, heads * size)), keys, values]


def _rotated(t: Translation, node: OnnxNode, x: Expr, positions: Expr) -> Expr:
    """Queries or keys rotated by their positions."""
    cosines, sines = node.x(7), node.x(8)
    width = 2 * _number(cosines.shape[1])
    partial = {} if x.shape[3] == width else {"rotary_embedding_dim": width}
    operands = (x, cosines, sines, t.b.cast(positions, i64))
    kept = {"interleaved": node.integer("rotary_interleaved"), **partial}
    (made,) = t.standard(node, "RotaryEmbedding", operands, kept)
    return made  # type: ignore[no-any-return]


def _behind(t: Translation, all_tokens: Expr, past: Expr | None, new: Expr, begins: Expr) -> Expr:
    """Appends new rows to the past ones, from row `begins` of each batch item on; rows after them are 0."""
    if past is None:
        return new
    (batch, groups, steps, size), before = new.shape, past.shape[2]
    length = maximum(before, t.extent(all_tokens, None))
    places = t.b.unsqueeze(numbers(t, length), 0)
    number = t.b.subtract(places, begins)  # the number of each row among the new ones
    is_old = t.b.less(number, 0)
    row = t.b.where(is_old, places, t.b.add(t.b.minimum(number, scalar(t, steps - 1)), scalar(t, before)))
    shape = (batch, groups, length, size)
    rows = t.b.broadcast_to(t.b.reshape(row, (batch, 1, length, 1)), shape)
    joined = t.b.gather_elements(t.b.concat([past, new], 2), rows, 2)
    is_there = t.b.less(number, scalar(t, steps))
    return t.b.where(t.b.reshape(is_there, (batch, 1, length, 1)), joined, 0.0)


def _attended(
    t: Translation,
    node: OnnxNode,
    query: Expr,
    key: Expr,
    value: Expr,
    bias: Expr | None,
    past: Sequence[Expr | None],
) -> list[Result]:
    """The result of the standard's Attention, and the keys and values including the past ones."""
    heads = node.integer("num_heads")
    if key.tensor.rank == 4:
        # The keys are already split into heads, so split the queries too.
        apart = t.b.reshape(query, (*query.shape[:2], heads, _number(query.shape[2]) // heads))
        query = t.b.transpose(apart, (0, 2, 1, 3))
    scale = {"scale": node.number("scale")} if node.number("scale", 0.0) else {}
    counts = {} if query.tensor.rank == 4 else {"q_num_heads": heads, "kv_num_heads": heads}
    attributes = {"is_causal": int(node.flag("unidirectional")), **counts, **scale}
    made = t.standard(node, "Attention", (query, key, value, bias, *past), attributes, ["y", "k", "v"])
    if query.tensor.rank == 4:
        turned = t.b.transpose(made[0], (0, 2, 1, 3))
        made[0] = t.b.reshape(turned, (*turned.shape[:2], turned.shape[2] * turned.shape[3]))
    return made


def _filtered(t: Translation, node: OnnxNode, mask: Expr | None, length: Size) -> Expr | None:
    """The bias of scores, `[batch, 1, queries or 1, keys]`, for a mask or for lengths of the keys."""
    least = np.float32(node.number("mask_filter_value", -10000.0))
    if mask is None:
        return None
    if mask.tensor.rank == 1:
        steps = numbers(t, length)
        mask = t.b.less(steps, t.b.reshape(t.b.cast(mask, i64), (mask.shape[0], 1)))
    elif mask.tensor.rank in (2, 3):
        mask = t.b.greater(mask, 0) if not mask.dtype.is_bool else mask
    else:
        raise Unsupported(f"its mask has {mask.tensor.rank} axes")
    kept = t.b.where(mask, np.float32(0), least)
    return t.b.unsqueeze(kept, (1, 2) if kept.tensor.rank == 2 else (1,))


def _summed(t: Translation, first: Expr | None, second: Expr | None) -> Expr | None:
    if first is None or second is None:
        return second if first is None else first
    return t.b.add(t.b.cast(first, second.dtype), second)


ATTENTION: Mapping[str, Importer] = {
    "Attention": _attention,
    "GroupQueryAttention": _grouped_query_attention,
    "QAttention": _quantized_attention,
    "MultiHeadAttention": _multi_head_attention,
    "RotaryEmbedding": _rotary_embedding,
}


# The most rows for which unpacking the weights at each call takes at most about as long as reading floats.
_FEW_ROWS = 4
# The candidates for the columns of a panel.
_COLUMNS = (64, 32, 16)


def _unpacked(t: Translation, packed: Expr, bits: int) -> Expr:
    """Unpacks the integers in bytes along the last axis, the first one in the lowest bits."""
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
    """Dequantizes integers by scale and zero point of their block: of `size` along the last axis, or as in `order`.

    There may be more zero points than blocks, as padding of their last byte.
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


def _matmul_nbits(t: Translation, node: OnnxNode) -> Expr:
    """A product with quantized weights, one row per column. `accuracy_level` is a hint; it is computed in floats."""
    node.integer("accuracy_level")
    x, scales, zeros = node.x(0), node.x(2), node.maybe(3)
    k, n, bits, size = (node.integer(name) for name in ("K", "N", "bits", "block_size"))
    blocks = -(-k // size)
    made = _of_few_rows(t, node, (k, n, bits, size))
    if made is not None:
        return made
    whole = _unpacked(t, t.b.reshape(node.x(1), (n, blocks * size * bits // 8)), bits)
    if zeros is not None:
        zeros = (
            _unpacked(t, t.b.reshape(zeros, (n, -1)), bits) if zeros.dtype == u8 else t.b.reshape(zeros, (n, blocks))
        )
    points = float(1 << (bits - 1)) if zeros is None else zeros
    whole = t.b.slice(whole, [0], [k], [1])
    rows = _floats(t, whole, t.b.reshape(scales, (n, blocks)), points, size, node.maybe(4))
    return _with_bias(t, node, t.b.matmul(x, t.b.transpose(t.b.cast(rows, x.dtype))))


def _with_bias(t: Translation, node: OnnxNode, total: Expr) -> Expr:
    bias = node.maybe(5)
    return total if bias is None else t.b.add(total, bias)


def _of_few_rows(t: Translation, node: OnnxNode, numbers: tuple[int, int, int, int]) -> Expr | None:
    """The product of few rows, which unpacks weights at each call; None for more rows, or blocks in another order.

    `numbers` is (terms, columns, bits, terms of a block). An unknown number of rows counts as few.
    """
    (k, n, bits, size), x, scales, zeros = numbers, node.x(0), node.x(2), node.maybe(3)
    columns, rows = next((each for each in _COLUMNS if n % each == 0), 0), product(x.shape[:-1])
    may_be_few = not isinstance(rows, int) or rows <= _FEW_ROWS
    are_floats = {x.dtype, scales.dtype} == {f32} and node.maybe(4) is None
    if not (may_be_few and are_floats and columns) or k % size or bits not in (2, 4, 8):
        return None
    if zeros is None:
        zeros = t.b.constant(np.full((n, k // size), 1 << (bits - 1), np.float32))
    elif zeros.dtype == u8:
        zeros = t.b.slice(_unpacked(t, t.b.reshape(zeros, (n, -1)), bits), [0], [k // size], [1])

    def by_panels(each: Expr, *of_block: int) -> Expr:
        """Packs rows, one per column, into panels of columns, which become the last axis."""
        axes = range(2, 3 + len(of_block))
        return t.b.transpose(t.b.reshape(each, (n // columns, columns, k // size, *of_block)), (0, *axes, 1))

    scale, zero = (by_panels(t.b.cast(each, f32)) for each in (scales, zeros))
    return _with_bias(t, node, t.b.matmul_bits(x, by_panels(node.x(1), size * bits // 8), scale, zero, bits=bits))


def _gather_blocks(t: Translation, node: OnnxNode) -> Expr:
    """Gathers rows of a block-quantized table and dequantizes them."""
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


def _experts(t: Translation, node: OnnxNode) -> Expr:
    """A mixture of experts, with two or three layers of weights [experts, out, in] and biases."""
    numbers = ((2, 3), (4, 5), (6, 7))
    return _mixed(t, node, [(node.maybe(weight), node.maybe(bias)) for weight, bias in numbers])


def _quantized_experts(t: Translation, node: OnnxNode) -> Expr:
    """As `_experts`, with quantized weights that have a scale per row, or per block of a row."""
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


def _mixed(t: Translation, node: OnnxNode, layers: list[tuple[Expr | None, Expr | None]]) -> Expr:
    """The results of all experts for each row, weighted by the shares of the `k` experts with the best scores."""
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


def _activated(t: Translation, node: OnnxNode, x: Expr, other: Expr | None) -> Expr:
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
