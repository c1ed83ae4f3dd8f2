"""Importers of com.microsoft: activations, normalizations and products, as onnxruntime's optimizers write them.

Quantized operators are computed in f32, by dequantizing the operands and quantizing the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tirlite.graph.expr import Expr
from tirlite.graph.extents import product
from tirlite.graph.onnx.computed import numbers, scalar
from tirlite.graph.onnx.importers.quantization import QUANTIZATION, point_of
from tirlite.graph.onnx.importers.recurrence import (
    USUAL_LSTM,
    CellWeights,
    by_steps,
    is_plain,
    lengths_of,
    part_of,
    results,
    sequences_of,
    state,
    ways_of,
)
from tirlite.graph.onnx.node import OnnxNode, Unsupported
from tirlite.graph.onnx.translation import NEWEST, Importer, Results, Translation
from tirlite.graph.operators.laid_out import NARROW, WIDE
from tirlite.ir import f32, i16, i32, i64
from tirlite.record import replace
from tirlite.sizes import Size


def _same(op: str) -> Importer:
    """The importer of the standard's operator with this name."""
    return lambda t, node: t.standard(node, op, node.operands, node.attributes, node.outputs)


def _gelu(t: Translation, node: OnnxNode) -> Expr:
    x = node.first if node.maybe(1) is None else t.b.add(node.first, node.x(1))
    return t.b.gelu(x, approximate=node.op == "FastGelu")


def _quick_gelu(t: Translation, node: OnnxNode) -> Expr:
    x = node.first
    return t.b.multiply(x, t.b.sigmoid(t.b.multiply(x, node.number("alpha", 1.702))))


def _skipped(t: Translation, node: OnnxNode, bias: Expr | None) -> Expr:
    """The sum of the operand, of the skip connection, which may have no batch axis, and of a bias."""
    x, skip = node.x(0), node.x(1)
    total = t.b.add(x, skip)
    return total if bias is None else t.b.add(total, bias)


def _skip_layer_norm(t: Translation, node: OnnxNode) -> Sequence[Expr | None]:
    total, how = _skipped(t, node, node.maybe(4)), {"epsilon": node.number("epsilon", 1e-12)}
    made = t.standard(node, "LayerNormalization", (total, node.x(2), node.maybe(3)), how, node.outputs[:3])
    return [*made, *[None] * (3 - len(made)), total]


def _skip_rms_norm(t: Translation, node: OnnxNode) -> Sequence[Expr | None]:
    total, how = _skipped(t, node, node.maybe(3)), {"epsilon": node.number("epsilon", 1e-12)}
    made, inverse = t.standard(node, "RMSNormalization", (total, node.x(2)), how)
    return [made, None, inverse, total]


def _quantized_embeddings(t: Translation, node: OnnxNode) -> Sequence[Expr | None]:
    """EmbedLayerNormalization of dequantized tables."""

    def floats(number: int) -> Expr | None:
        """Operand `number`, dequantized: its scale is 6 operands later, its zero point 11."""
        if (table := node.maybe(number)) is None:
            return None
        scale, zero = (t.b.reshape(node.x(number + behind), ()) for behind in (6, 11))
        return t.b.dequantize_linear(table, scale, zero, axis=0)

    tables = [floats(number) for number in range(2, 7)]
    return _embed_layer_norm(t, replace(node, operands=(*node.operands[:2], *tables, node.maybe(7))))


def _embed_layer_norm(t: Translation, node: OnnxNode) -> Sequence[Expr | None]:
    """The normalized sum of word, position and segment embeddings; the sum of the mask; and the plain sum."""
    numbers, segments = node.x(0), node.maybe(1)
    words, positions, parts = node.x(2), node.x(3), node.maybe(4)
    batch, length = numbers.shape
    total = t.b.gather(words, numbers, 0)
    at = node.maybe(8)
    place = t.b.slice(positions, [0], [length], [0]) if at is None else t.b.gather(positions, at, 0)
    total = t.b.add(total, place)
    if segments is not None and parts is not None:
        total = t.b.add(total, t.b.gather(parts, segments, 0))
    made = t.b.layer_norm(total, node.x(5), node.x(6), axis=-1, epsilon=node.number("epsilon", 1e-12))
    mask = node.maybe(7)
    if mask is not None:
        return [made, t.b.reduce_sum(t.b.cast(mask, i32), 1), total]
    return [made, t.b.broadcast_to(t.b.cast(t.b.constant(0), i32), (batch,)), total]


def _fused_matmul(t: Translation, node: OnnxNode) -> Expr:
    operands = []
    for number, side in enumerate("AB"):
        x = node.x(number)
        axes = list(range(x.tensor.rank))
        if node.flag(f"transBatch{side}"):
            # The batch axis is moved from the front to before the last axis.
            axes = [*axes[1:-1], axes[0], axes[-1]]
        if node.flag(f"trans{side}") and len(axes) > 1:
            axes[-2:] = axes[-1], axes[-2]
        operands.append(t.b.transpose(x, axes) if axes != sorted(axes) else x)
    made, alpha = t.b.matmul(*operands), node.number("alpha", 1.0)
    return made if alpha == 1.0 else t.b.multiply(made, alpha)


def _activated(t: Translation, node: OnnxNode, x: Expr, numbers: Sequence[float]) -> Expr:
    """Applies the activation of a fused operator to its result."""
    name = node.text("activation")
    if name not in _ACTIVATIONS:
        raise Unsupported(f"its activation is {name}")
    given = dict(zip(_ACTIVATIONS[name], numbers, strict=False))
    return t.standard(node, name, (x,), given, version=6)[0] if name else x


# The names of the activations' parameters.
_ACTIVATIONS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(["", "Relu", "Sigmoid", "Tanh", "Softplus"], ()),
    "LeakyRelu": ("alpha",),
    "Clip": ("min", "max"),
    "HardSigmoid": ("alpha", "beta"),
}


def _fused_conv(t: Translation, node: OnnxNode) -> Expr:
    (made,) = t.standard(node, "Conv", node.operands[:3], node.attributes)
    other = node.maybe(3)
    return _activated(t, node, made if other is None else t.b.add(made, other), node.numbers("activation_params") or ())


def _fused_gemm(t: Translation, node: OnnxNode) -> Expr:
    (made,) = t.standard(node, "Gemm", node.operands, node.attributes)
    given = [node.number(name) for name in ("activation_alpha", "activation_beta") if name in node.attributes]
    return _activated(t, node, made, given)


def _bias_softmax(t: Translation, node: OnnxNode) -> Expr:
    if node.axis("axis", 1) != node.rank - 1 or not node.flag("is_inner_broadcast", 1):
        raise Unsupported("its axis is not the last, or its bias is not of all outer axes")
    return t.b.softmax(t.b.add(node.x(0), node.x(1)), -1)


MICROSOFT: Mapping[str, Importer] = {
    **dict.fromkeys(["Gelu", "FastGelu", "BiasGelu"], _gelu),
    "QuickGelu": _quick_gelu,
    "SkipLayerNormalization": _skip_layer_norm,
    "SkipSimplifiedLayerNormalization": _skip_rms_norm,
    "EmbedLayerNormalization": _embed_layer_norm,
    "QEmbedLayerNormalization": _quantized_embeddings,
    **dict.fromkeys(["FusedMatMul", "TransposeMatMul"], _fused_matmul),
    "FusedConv": _fused_conv,
    "FusedGemm": _fused_gemm,
    "BiasSoftmax": _bias_softmax,
    **{op: _same(op) for op in ("Trilu", "GatherND", "Unique")},
}


def _wide(t: Translation, node: OnnxNode, number: int) -> Expr:
    """Operand `number`, dequantized by the scale and the zero point in the next two operands."""
    x, scale, zero = node.x(number), node.x(number + 1), node.maybe(number + 2)
    return t.b.dequantize_linear(x, t.b.reshape(scale, ()), None if zero is None else t.b.reshape(zero, ()), axis=0)


def _small(t: Translation, node: OnnxNode, x: Expr, number: int) -> Expr:
    """x quantized by the scale in operand `number` and the zero point in the next one."""
    zero = node.maybe(number + 1)
    dtype = node.first.dtype if zero is None else zero.dtype
    point = None if zero is None else t.b.reshape(zero, ())
    return t.b.quantize_linear(x, t.b.reshape(node.x(number), ()), point, axis=0, dtype=dtype)


def _between(count: int, op: str) -> Importer:
    """An operator of `count` quantized operands, each followed by its scale and zero point; the result's come last."""

    def importer(t: Translation, node: OnnxNode) -> Expr:
        wide, version = [_wide(t, node, 3 * number) for number in range(count)], node.integer("opset", NEWEST)
        (made,) = t.standard(node, op, wide, {"axis": -1, **node.attributes}, version=version)
        return _small(t, node, made, 3 * count)

    return importer


def _by_channels(importer: Importer, *, is_last: bool = False) -> Importer:
    """An operator on images, whose first operand and result may be channels-last."""

    def turned(t: Translation, node: OnnxNode) -> Results:
        x, last = node.first, node.rank - 1
        if not node.flag("channels_last", is_last):
            return importer(t, node)
        x = t.b.transpose(x, (0, last, *range(1, last)))
        found = importer(t, replace(node, operands=(x, *node.operands[1:])))
        made = found[0] if isinstance(found, Sequence) else found
        assert isinstance(made, Expr)
        return t.b.transpose(made, (0, *range(2, last + 1), 1))

    return turned


def _concat(t: Translation, node: OnnxNode) -> Expr:
    parts = [_wide(t, node, number) for number in range(2, len(node.operands), 3)]
    return _small(t, node, t.b.concat(parts, node.integer("axis") % parts[0].tensor.rank), 0)


def _where(t: Translation, node: OnnxNode) -> Expr:
    return _small(t, node, t.b.where(node.x(0), _wide(t, node, 1), _wide(t, node, 4)), 7)


def _gemm(t: Translation, node: OnnxNode) -> Expr:
    """A scaled product of integers, quantized if the result has a scale."""
    a, b = node.x(0), node.x(3)
    a = t.b.transpose(a) if node.flag("transA") else a
    b = t.b.transpose(b) if node.flag("transB") else b
    total = t.b.matmul_integer(a, b, point_of(t, node, 2, a), point_of(t, node, 5, b))
    bias = node.maybe(6)
    total = total if bias is None else t.b.add(total, bias)
    scale = t.b.multiply(t.b.multiply(t.b.reshape(node.x(1), ()), node.x(4)), node.number("alpha", 1.0))
    made = t.b.multiply(t.b.cast(total, f32), scale)
    return made if node.maybe(7) is None else _small(t, node, made, 7)


def _matmul_to_float(t: Translation, node: OnnxNode) -> Expr:
    a, b, *scales = (node.x(number) for number in range(4))
    return scaled(t, (a, b), zeros_of(t, node, 4, 5), scales, node.maybe(6))


def _dynamic_matmul(t: Translation, node: OnnxNode) -> Expr:
    """A matrix product whose first operand is quantized by its own range."""
    small, scale, zero = t.standard(node, "DynamicQuantizeLinear", (node.x(0),))
    b = node.x(1)
    return scaled(t, (small, b), (zero, point_of(t, node, 3, b)), (scale, node.x(2)), node.maybe(4))


def zeros_of(t: Translation, node: OnnxNode, *numbers: int) -> list[Expr]:
    """The zero points of the first operands, in the operands with these numbers; 0 if omitted."""
    return [point_of(t, node, number, node.x(place)) for place, number in enumerate(numbers)]


def scaled(
    t: Translation, factors: Sequence[Expr], zeros: Sequence[Expr], scales: Sequence[Expr], bias: Expr | None
) -> Expr:
    """The product of two quantized matrices as floats, plus an optional bias."""
    total = t.b.cast(t.b.matmul_integer(*factors, *zeros), f32)
    first, second = (t.b.reshape(each, ()) if product(each.shape) == 1 else each for each in scales)
    made = t.b.multiply(total, t.b.multiply(first, second))
    return made if bias is None else t.b.add(made, bias)


def _dynamic_lstm(t: Translation, node: OnnxNode) -> Sequence[Expr | None]:
    """An LSTM with quantized, transposed weights; inputs and hidden states are quantized dynamically.

    Inputs are quantized by their range over all steps up to the longest sequence's end, hidden states before each step
    by their range over the batch.
    """
    node.integer("hidden_size")  # read only to mark it as known: the weights' shape gives it
    plain = replace(node, op="LSTM", domain="", version=14, operands=node.operands[:8])
    x, recurrence, bias = sequences_of(t, plain), node.x(2), plain.maybe(3)
    ways, hidden, gates = recurrence.shape
    lengths, until = lengths_of(plain, x.shape[0]), None
    if lengths is not None:
        inside = t.b.less(t.b.reshape(numbers(t, x.shape[0]), (-1, 1, 1)), t.b.cast(t.b.reduce_max(lengths), i64))
        x, until = t.b.where(inside, x, 0.0), _counted(t, node, lengths, x.shape[0])
    columns = t.b.reshape(t.b.transpose(node.x(1), (1, 0, 2)), (-1, ways * gates))
    scales, zeros = _of_gates(t, node, 8, gates), _of_gates(t, node, 9, gates)
    if bias is not None:
        own, other = t.b.split(bias, 2, 1)
        bias = t.b.reshape(t.b.add(own, other), (-1,))
    sums = _quantized_product(t, node, x, columns, scales, zeros, bias)
    start = [state(t, plain, number, (ways, x.shape[1], hidden)) for number in (5, 6)]
    if not is_plain(plain, USUAL_LSTM, len(ways_of(plain))):
        return results(t, plain, _in_steps(t, plain, node, sums, start, lengths, until), lengths)
    (pairs, totals), by = _pairs(t, node), _of_gates(t, node, 10, gates)
    assert by is not None
    ends = None
    if lengths is not None and until is not None:
        ends = t.b.concat([t.b.unsqueeze(each, 0) for each in (lengths, until)], 0)
    made = t.b.lstm_bytes(sums, pairs, by, totals, start[0], start[1], ends, reverse=ways_of(plain)[0])
    return results(t, plain, made, lengths)


def _in_steps(
    t: Translation,
    plain: OnnxNode,
    node: OnnxNode,
    sums: Expr,
    start: list[Expr],
    lengths: Expr | None,
    until: Expr | None,
) -> tuple[Expr, ...]:
    """The outputs and last states of a layer without a kernel, by loops.

    For backward directions each sequence is reversed by its own length, so that all start at step 0.
    """
    ways = ways_of(plain)
    each_way = [_quantized_weights(t, node, place, until) for place in range(len(ways))]
    if lengths is None:
        return by_steps(t, plain, USUAL_LSTM, sums, each_way, start, None, ways)

    def turned(x: Expr, is_backwards: bool) -> Expr:
        return t.standard(plain, "ReverseSequence", (x, lengths))[0] if is_backwards else x

    sums = t.b.concat([turned(*each) for each in zip(t.b.split(sums, len(ways), 2), ways, strict=True)], 2)
    outputs, *states = by_steps(t, plain, USUAL_LSTM, sums, each_way, start, lengths, [False] * len(ways))
    time, _, batch, hidden = outputs.shape
    apart = [t.b.reshape(each, (time, batch, hidden)) for each in t.b.split(outputs, len(ways), 1)]
    rows = [t.b.unsqueeze(turned(*each), 1) for each in zip(apart, ways, strict=True)]
    return (t.b.concat(rows, 1), *states)


def _quantized_product(
    t: Translation, node: OnnxNode, x: Expr, weights: Expr, scale: Expr | None, zero: Expr | None, bias: Expr | None
) -> Expr:
    """The product of dynamically quantized floats and of weights with a scale and a zero point per column."""
    assert scale is not None
    small, size, point = t.standard(node, "DynamicQuantizeLinear", (x,))
    of_weights = t.b.constant(np.zeros((), weights.dtype.numpy)) if zero is None else t.b.reshape(zero, (-1,))
    return scaled(t, (small, weights), (point, of_weights), (size, t.b.reshape(scale, (-1,))), bias)


def _quantized_weights(t: Translation, node: OnnxNode, place: int, until: Expr | None) -> CellWeights:
    """The recurrent weights of one direction; a sequence counts in the batch's range up to step `until`."""
    recurrence = part_of(t, node.x(2), place)
    gates = recurrence.shape[1]
    both = (_of_gates(t, node, number, gates) for number in (10, 11))
    scale, zero = (None if each is None else part_of(t, each, place) for each in both)

    def times(hidden: Expr, time: Expr) -> Expr:
        if until is not None:
            is_over = t.b.less(t.b.reshape(t.b.cast(until, i64), (-1, 1)), time)
            hidden = t.b.where(is_over, 0.0, hidden)
        return _quantized_product(t, node, hidden, recurrence, scale, zero, None)

    return CellWeights(recurrence, None, times)


def _counted(t: Translation, node: OnnxNode, lengths: Expr, time: Size) -> Expr:
    """The step up to which each sequence's state counts in the range that a batch's states are quantized by.

    As in onnxruntime: if the layer's outputs are used, the state is 0 after the sequence's end; else it is kept, unless
    the sequence is empty.
    """
    if node.wants(0):
        return lengths
    return t.b.where(t.b.greater(lengths, 0), t.b.cast(scalar(t, time), lengths.dtype), lengths)


def _of_gates(t: Translation, node: OnnxNode, number: int, gates: Size) -> Expr | None:
    """The scale or zero point of each direction, or of each of its columns, broadcast to all columns."""
    each = node.maybe(number)
    return None if each is None else t.b.broadcast_to(t.b.reshape(each, (each.shape[0], -1)), (each.shape[0], gates))


def _pairs(t: Translation, node: OnnxNode) -> tuple[Expr, Expr]:
    """The recurrent weights minus their zero points, packed into panels with rows in pairs; and their column sums."""
    x = t.b.cast(node.x(2), i16)
    ways, hidden, gates = x.shape
    zero = _of_gates(t, node, 11, gates)
    if zero is not None:
        x = t.b.subtract(x, t.b.reshape(t.b.cast(zero, i16), (ways, 1, gates)))
    if not isinstance(hidden, int):
        raise Unsupported("the width of its state is not known")
    totals = t.b.reduce_sum(t.b.cast(x, i32), 1)
    x = t.b.pad(x, (0, 0, 0), (0, 1, 0)) if hidden % 2 else x
    size = next(n for n in (*WIDE, *NARROW, 8, 4) if 4 * hidden % n == 0)
    return t.b.transpose(t.b.reshape(x, (ways, (hidden + 1) // 2, 2, -1, size)), (0, 3, 1, 4, 2)), totals


MICROSOFT_QUANTIZED: Mapping[str, Importer] = {
    "QuantizeLinear": QUANTIZATION["QuantizeLinear"],
    "DequantizeLinear": QUANTIZATION["DequantizeLinear"],
    "QLinearConv": _by_channels(_same("QLinearConv")),
    "NhwcMaxPool": _by_channels(_same("MaxPool"), is_last=True),
    **{f"QLinear{op}": _between(2, op) for op in ("Add", "Mul")},
    **{f"QLinear{op}": _between(1, op) for op in ("Sigmoid", "LeakyRelu", "Softmax", "ReduceMean")},
    **{f"QLinear{op}": _by_channels(_between(1, op)) for op in ("AveragePool", "GlobalAveragePool")},
    "QLinearConcat": _concat,
    "QLinearWhere": _where,
    "QGemm": _gemm,
    "MatMulIntegerToFloat": _matmul_to_float,
    "DynamicQuantizeMatMul": _dynamic_matmul,
    "DynamicQuantizeLSTM": _dynamic_lstm,
}
