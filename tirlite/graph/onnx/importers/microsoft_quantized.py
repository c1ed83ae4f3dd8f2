"""Importers of com.microsoft on small integers that stand for floats, and of weights in a few bits.

An operator that takes and gives such integers is computed in f32 between, and rounded once, to the nearest integer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tirlite.graph.expr import Expr
from tirlite.graph.extents import product
from tirlite.graph.onnx.importers.convolution import CONVOLUTION
from tirlite.graph.onnx.importers.quantization import QUANTIZATION
from tirlite.graph.onnx.importers.recurrence import RECURRENCE
from tirlite.graph.onnx.node import Node, Unsupported
from tirlite.graph.onnx.translation import Importer, Translation
from tirlite.ir import f32, i32, u8

Function = Callable[[Translation, Node, "Sequence[Expr]"], Expr]


def _wide(t: Translation, node: Node, number: int) -> Expr:
    """The floats that operand `number` stands for, by the scale and the zero point behind it."""
    x, scale, zero = node.x(number), node.x(number + 1), node.maybe(number + 2)
    return t.b.dequantize_linear(x, t.b.reshape(scale, ()), None if zero is None else t.b.reshape(zero, ()), axis=0)


def _small(t: Translation, node: Node, x: Expr, number: int) -> Expr:
    """Floats as small integers, by the scale at `number` and the zero point behind it."""
    zero = node.maybe(number + 1)
    dtype = node.first.dtype if zero is None else zero.dtype
    point = None if zero is None else t.b.reshape(zero, ())
    return t.b.quantize_linear(x, t.b.reshape(node.x(number), ()), point, axis=0, dtype=dtype)


def _between(count: int, function: Function) -> Importer:
    """A function of `count` quantized operands, each with scale and zero point; those of the result stand behind."""

    def importer(t: Translation, node: Node) -> Expr:
        wide = [_wide(t, node, 3 * number) for number in range(count)]
        return _small(t, node, function(t, node, wide), 3 * count)

    return importer


def _leaky(t: Translation, node: Node, x: Sequence[Expr]) -> Expr:
    return t.b.leaky_relu(x[0], node.number("alpha", 0.01))


def _softmax(t: Translation, node: Node, x: Sequence[Expr]) -> Expr:
    axis, shape = node.axis("axis", -1), x[0].shape
    if node.integer("opset") >= 13 or axis == len(shape) - 1:
        return t.b.softmax(x[0], axis)
    flat = t.b.reshape(x[0], (product(shape[:axis]), product(shape[axis:])))
    return t.b.reshape(t.b.softmax(flat, 1), shape)


def _channels_first(node: Node) -> None:
    if node.flag("channels_last"):
        raise Unsupported("its channels stand last")


def _average(t: Translation, node: Node, x: Sequence[Expr]) -> Expr:
    _channels_first(node)
    made = CONVOLUTION["AveragePool"](t, replace(node, operands=(x[0],)))
    assert isinstance(made, Expr)
    return made


def _global_average(t: Translation, node: Node, x: Sequence[Expr]) -> Expr:
    _channels_first(node)
    return t.b.global_average_pool(x[0])


def _reduce_mean(t: Translation, node: Node, x: Sequence[Expr]) -> Expr:
    return t.b.reduce_mean(x[0], node.integers("axes"), keepdims=node.flag("keepdims", 1))


def _concat(t: Translation, node: Node) -> Expr:
    parts = [_wide(t, node, number) for number in range(2, len(node.operands), 3)]
    point = node.x(1)
    joined = t.b.concat(parts, node.integer("axis") % parts[0].tensor.rank)
    return t.b.quantize_linear(joined, t.b.reshape(node.x(0), ()), t.b.reshape(point, ()), axis=0, dtype=point.dtype)


def _where(t: Translation, node: Node) -> Expr:
    made = t.b.where(node.x(0), _wide(t, node, 1), _wide(t, node, 4))
    zero = node.x(8)
    return t.b.quantize_linear(made, t.b.reshape(node.x(7), ()), t.b.reshape(zero, ()), axis=0, dtype=zero.dtype)


def _gemm(t: Translation, node: Node) -> Expr:
    """A product of integers, scaled; in integers again where the result has a scale."""
    a, b = node.x(0), node.x(3)
    a = t.b.transpose(a) if node.flag("transA") else a
    b = t.b.transpose(b) if node.flag("transB") else b
    total = t.b.matmul_integer(a, b, _point(t, node, 2, a), _point(t, node, 5, b))
    bias = node.maybe(6)
    total = total if bias is None else t.b.add(total, bias)
    scale = t.b.multiply(t.b.multiply(t.b.reshape(node.x(1), ()), node.x(4)), node.number("alpha", 1.0))
    made = t.b.multiply(t.b.cast(total, f32), scale)
    return made if node.maybe(7) is None else _small(t, node, made, 7)


def _point(t: Translation, node: Node, number: int, like: Expr) -> Expr:
    """A zero point: one number, or one for each column."""
    zero = node.maybe(number)
    if zero is None:
        return t.b.constant(np.zeros((), like.dtype.numpy))
    return t.b.reshape(zero, ()) if zero.tensor.rank and zero.shape[0] == 1 else zero


def _matmul_to_float(t: Translation, node: Node) -> Expr:
    a, b, scale_a, scale_b = (node.x(number) for number in range(4))
    return _scaled(t, node, (a, b), (_point(t, node, 4, a), _point(t, node, 5, b)), (scale_a, scale_b), 6)


def _dynamic_matmul(t: Translation, node: Node) -> Expr:
    """The first operand is quantized by its own least and greatest elements."""
    made = QUANTIZATION["DynamicQuantizeLinear"](t, replace(node, operands=(node.x(0),)))
    assert isinstance(made, list)
    small, scale, zero = made
    b = node.x(1)
    return _scaled(t, node, (small, b), (zero, _point(t, node, 3, b)), (scale, node.x(2)), 4)


def _scaled(
    t: Translation,
    node: Node,
    factors: tuple[Expr, Expr],
    zeros: tuple[Expr, Expr],
    scales: tuple[Expr, Expr],
    bias_at: int,
) -> Expr:
    total = t.b.cast(t.b.matmul_integer(*factors, *zeros), f32)
    first, second = (t.b.reshape(each, ()) if product(each.shape) == 1 else each for each in scales)
    made = t.b.multiply(total, t.b.multiply(first, second))
    bias = node.maybe(bias_at)
    return made if bias is None else t.b.add(made, bias)


def _matmul_nbits(t: Translation, node: Node) -> Expr:
    """Weights of `bits` bits in blocks along K, each with a scale and a zero point; a row for each column of B."""
    x, packed, scales, zeros = node.x(0), node.x(1), node.x(2), node.maybe(3)
    k, n, bits, size = (node.integer(name) for name in ("K", "N", "bits", "block_size"))
    if node.maybe(4) is not None or bits not in (2, 4, 8):
        raise Unsupported("it has an order of its groups, or weights that do not fill bytes")
    blocks = -(-k // size)
    whole = _numbers(t, t.b.reshape(packed, (n, blocks, size * bits // 8)), bits, size)
    if zeros is None:
        apart = t.b.subtract(t.b.cast(whole, scales.dtype), float(1 << (bits - 1)))
    else:
        if zeros.dtype == u8:
            per_row = -(-blocks * bits // 8)
            zeros = _numbers(t, t.b.reshape(zeros, (n, per_row)), bits, per_row * 8 // bits)
            zeros = t.b.slice(zeros, [0], [blocks], [1])
        point = t.b.cast(t.b.reshape(zeros, (n, blocks, 1)), scales.dtype)
        apart = t.b.subtract(t.b.cast(whole, scales.dtype), point)
    made = t.b.multiply(apart, t.b.reshape(scales, (n, blocks, 1)))
    rows = t.b.slice(t.b.reshape(made, (n, blocks * size)), [0], [k], [1])
    total = t.b.matmul(x, t.b.transpose(t.b.cast(rows, x.dtype)))
    bias = node.maybe(5)
    return total if bias is None else t.b.add(total, bias)


def _numbers(t: Translation, packed: Expr, bits: int, count: int) -> Expr:
    """The last axis with its bytes taken apart: `count` integers, the first one in the lowest bits."""
    if bits == 8:
        return packed
    shape = packed.shape
    mask = (1 << bits) - 1
    parts = [
        t.b.bitwise_and(t.b.shift_right(packed, t.b.constant(np.uint8(place))), mask) for place in range(0, 8, bits)
    ]
    return t.b.reshape(t.b.concat([t.b.unsqueeze(each, -1) for each in parts], -1), (*shape[:-1], count))


def _dynamic_lstm(t: Translation, node: Node) -> Sequence[Expr | None]:
    """An LSTM whose weights are small integers, turned; what it multiplies them with stays as it is."""
    weights = [
        t.b.transpose(_of_directions(t, node, number, 8 + 2 * place), (0, 2, 1)) for place, number in enumerate((1, 2))
    ]
    plain = replace(node, op="LSTM", domain="", version=14, operands=(node.first, *weights, *node.operands[3:8]))
    made = RECURRENCE["LSTM"](t, plain)
    assert not isinstance(made, Expr)
    return list(made)  # type: ignore[arg-type]


def _of_directions(t: Translation, node: Node, number: int, at: int) -> Expr:
    """Weights [directions, in, gates] by a scale and a zero point for each direction, or for each of its gates."""
    x, scale, zero = node.x(number), node.x(at), node.maybe(at + 1)
    shape = (x.shape[0], 1, -1)
    distance = t.b.cast(x, i32)
    if zero is not None:
        distance = t.b.subtract(distance, t.b.reshape(t.b.cast(zero, i32), shape))
    return t.b.multiply(t.b.cast(distance, f32), t.b.reshape(scale, shape))


MICROSOFT_QUANTIZED: Mapping[str, Importer] = {
    "QuantizeLinear": QUANTIZATION["QuantizeLinear"],
    "DequantizeLinear": QUANTIZATION["DequantizeLinear"],
    "QLinearConv": QUANTIZATION["QLinearConv"],
    "QLinearAdd": _between(2, lambda t, node, x: t.b.add(x[0], x[1])),
    "QLinearMul": _between(2, lambda t, node, x: t.b.multiply(x[0], x[1])),
    "QLinearSigmoid": _between(1, lambda t, node, x: t.b.sigmoid(x[0])),
    "QLinearLeakyRelu": _between(1, _leaky),
    "QLinearSoftmax": _between(1, _softmax),
    "QLinearAveragePool": _between(1, _average),
    "QLinearGlobalAveragePool": _between(1, _global_average),
    "QLinearReduceMean": _between(1, _reduce_mean),
    "QLinearConcat": _concat,
    "QLinearWhere": _where,
    "QGemm": _gemm,
    "MatMulIntegerToFloat": _matmul_to_float,
    "DynamicQuantizeMatMul": _dynamic_matmul,
    "DynamicQuantizeLSTM": _dynamic_lstm,
    "MatMulNBits": _matmul_nbits,
}
