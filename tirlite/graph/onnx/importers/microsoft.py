"""Importers of com.microsoft: functions, normalizations and products that onnxruntime's optimizers and tools write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tirlite.graph.expr import Expr
from tirlite.graph.onnx.importers.convolution import CONVOLUTION
from tirlite.graph.onnx.importers.declared import declared
from tirlite.graph.onnx.importers.indexing import INDEXING
from tirlite.graph.onnx.importers.selection import SELECTION
from tirlite.graph.onnx.node import Node, Unsupported
from tirlite.graph.onnx.translation import Importer, Translation
from tirlite.graph.registry import OPS
from tirlite.ir import i32


def _gelu(t: Translation, node: Node) -> Expr:
    x = node.first if node.maybe(1) is None else t.b.add(node.first, node.x(1))
    return t.b.gelu(x, approximate=node.op == "FastGelu")


def _quick_gelu(t: Translation, node: Node) -> Expr:
    x = node.first
    return t.b.multiply(x, t.b.sigmoid(t.b.multiply(x, node.number("alpha", 1.702))))


def _skipped(t: Translation, node: Node, bias: Expr | None) -> Expr:
    """The sum of the operand, of what skipped a layer, which may lack the batch, and of a bias."""
    x, skip = node.x(0), node.x(1)
    total = t.b.add(x, skip)
    return total if bias is None else t.b.add(total, bias)


def _moments(t: Translation, x: Expr, epsilon: float) -> tuple[Expr, Expr, Expr]:
    """What is left of the last axis without its mean, the mean, and 1 over the standard deviation."""
    mean = t.b.reduce_mean(x, -1, keepdims=True)
    apart = t.b.subtract(x, mean)
    variance = t.b.reduce_mean(t.b.multiply(apart, apart), -1, keepdims=True)
    return apart, mean, t.b.rsqrt(t.b.add(variance, epsilon))


def _skip_layer_norm(t: Translation, node: Node) -> Sequence[Expr | None]:
    total, epsilon = _skipped(t, node, node.maybe(4)), node.number("epsilon", 1e-12)
    made = t.b.layer_norm(total, node.x(2), node.maybe(3), axis=-1, epsilon=epsilon)
    if not (node.wants(1) or node.wants(2)):
        return [made, None, None, total]
    _, mean, inverse = _moments(t, total, epsilon)
    return [made, mean, inverse, total]


def _skip_rms_norm(t: Translation, node: Node) -> Sequence[Expr | None]:
    total = _skipped(t, node, node.maybe(3))
    made, inverse = _rms(t, total, node.x(2), node.number("epsilon", 1e-12))
    return [made, None, inverse, total]


def _rms_norm(t: Translation, node: Node) -> Sequence[Expr]:
    if node.axis("axis", -1) != node.rank - 1:
        raise Unsupported("it normalizes more than the last axis")
    return _rms(t, node.x(0), node.x(1), node.number("epsilon", 1e-5))


def _rms(t: Translation, x: Expr, scale: Expr, epsilon: float) -> tuple[Expr, Expr]:
    squares = t.b.reduce_mean(t.b.multiply(x, x), -1, keepdims=True)
    inverse = t.b.rsqrt(t.b.add(squares, epsilon))
    return t.b.multiply(t.b.multiply(x, inverse), scale), inverse


def _embed_layer_norm(t: Translation, node: Node) -> Sequence[Expr | None]:
    """Words, positions and segments, summed and normalized; and how many of the mask count."""
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


def _fused_matmul(t: Translation, node: Node) -> Expr:
    operands = []
    for number, side in enumerate("AB"):
        x = node.x(number)
        axes = list(range(x.tensor.rank))
        if node.flag(f"transBatch{side}"):
            # The first axis stands before the last but one.
            axes = [*axes[1:-1], axes[0], axes[-1]]
        if node.flag(f"trans{side}") and len(axes) > 1:
            axes[-2:] = axes[-1], axes[-2]
        operands.append(t.b.transpose(x, axes) if axes != sorted(axes) else x)
    made, alpha = t.b.matmul(*operands), node.number("alpha", 1.0)
    return made if alpha == 1.0 else t.b.multiply(made, alpha)


def _activated(t: Translation, node: Node, x: Expr, numbers: Sequence[float]) -> Expr:
    """What the activation of a fused operator makes of its result."""
    name = node.text("activation")
    if name in ("", "Relu", "Sigmoid", "Tanh", "Softplus"):
        return t.b.call(name.lower(), x) if name else x
    if name == "LeakyRelu":
        return t.b.leaky_relu(x, numbers[0] if numbers else 0.01)
    if name == "Clip" and len(numbers) == 2:
        return t.b.clip(x, numbers[0], numbers[1])
    if name == "HardSigmoid" and len(numbers) == 2:
        return t.b.hard_sigmoid(x, numbers[0], numbers[1])
    raise Unsupported(f"its activation is {name}")


def _fused_conv(t: Translation, node: Node) -> Expr:
    made = CONVOLUTION["Conv"](t, replace(node, operands=node.operands[:3]))
    assert isinstance(made, Expr)
    other = node.maybe(3)
    return _activated(t, node, made if other is None else t.b.add(made, other), node.numbers("activation_params") or ())


def _fused_gemm(t: Translation, node: Node) -> Expr:
    made = declared(OPS["gemm"])(t, node)
    assert isinstance(made, Expr)
    given = [node.number(name) for name in ("activation_alpha", "activation_beta") if name in node.attributes]
    return _activated(t, node, made, given)


def _bias_softmax(t: Translation, node: Node) -> Expr:
    if node.axis("axis", 1) != node.rank - 1 or not node.flag("is_inner_broadcast", 1):
        raise Unsupported("its axis is not the last, or its bias is not of all outer axes")
    return t.b.softmax(t.b.add(node.x(0), node.x(1)), -1)


MICROSOFT: Mapping[str, Importer] = {
    **dict.fromkeys(["Gelu", "FastGelu", "BiasGelu"], _gelu),
    "QuickGelu": _quick_gelu,
    "SkipLayerNormalization": _skip_layer_norm,
    "SkipSimplifiedLayerNormalization": _skip_rms_norm,
    "EmbedLayerNormalization": _embed_layer_norm,
    **dict.fromkeys(["FusedMatMul", "TransposeMatMul"], _fused_matmul),
    "FusedConv": _fused_conv,
    "FusedGemm": _fused_gemm,
    "BiasSoftmax": _bias_softmax,
    "Trilu": INDEXING["Trilu"],
    "GatherND": declared(OPS["gather_nd"]),
    "Unique": lambda t, node: list(SELECTION["Unique"](t, node))[:4],  # type: ignore[arg-type]
}
# What onnxruntime adds to the operators of the standard without a domain of its own.
ADDED: Mapping[str, Importer] = {"SimplifiedLayerNormalization": _rms_norm}
