"""Importers of quantization operators."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tirlite.graph.expr import Expr
from tirlite.graph.onnx.importers.convolution import conv_attrs
from tirlite.graph.onnx.narrow import DTYPES, NARROW, NarrowType, NarrowValue, narrowed, widened
from tirlite.graph.onnx.node import OnnxNode, Unsupported
from tirlite.graph.onnx.translation import Importer, Translation
from tirlite.ir import f32, i32, u8
from tirlite.sizes import Proof, prove_eq


def _quantize(t: Translation, node: OnnxNode) -> Expr | NarrowValue:
    x, scale, zero = node.x(0), node.x(1), node.maybe(2)
    number = node.integer("output_dtype")
    kind = node.kind(2) if zero is not None else NARROW.get(number)
    if kind is not None:
        return NarrowValue(_narrow_quantized(t, node, kind), kind)
    dtype = zero.dtype if zero is not None else DTYPES.get(number, u8) if number else u8
    if not dtype.is_integer or (number and number not in DTYPES):
        raise Unsupported("its results are not integers of 8 or 16 bits")
    if not node.integer("block_size"):
        return t.b.quantize_linear(x, scale, zero, axis=_axis(node), dtype=dtype)
    return t.b.cast(_whole(t, node, zero, dtype.min, dtype.max), dtype)


def _whole(t: Translation, node: OnnxNode, zero: Expr | None, least: int, most: int) -> Expr:
    """The quantized values, rounded and clamped to `least` .. `most`, as floats."""
    rounded = t.b.round(_scaled(t, node))
    if zero is not None:
        rounded = t.b.add(rounded, t.b.cast(_unfolded(t, node, zero), f32))
    return t.b.clip(rounded, float(least), float(most))


def _scaled(t: Translation, node: OnnxNode) -> Expr:
    return t.b.divide(t.b.cast(node.x(0), f32), t.b.cast(_unfolded(t, node, node.x(1)), f32))


def _narrow_quantized(t: Translation, node: OnnxNode, kind: NarrowType) -> Expr:
    zero = node.maybe(2)
    if kind.is_integer:
        return t.b.cast(_whole(t, node, zero, kind.least, kind.most), kind.stored)
    scaled = _scaled(t, node)
    if zero is not None:
        scaled = t.b.add(scaled, _unfolded(t, node, widened(t.b, zero, kind)))
    return narrowed(t.b, scaled, kind, saturate=node.flag("saturate", 1))


def _unfolded(t: Translation, node: OnnxNode, each: Expr) -> Expr:
    """A scale or zero point per tensor, per index of an axis or per block, expanded to broadcast against x."""
    size, shape = node.integer("block_size"), node.first.shape
    if not size and (each.tensor.rank == 0 or prove_eq(each.tensor.elements, 1) is Proof.YES):
        return t.b.reshape(each, ())
    axis = node.axis("axis", 1)
    if not size:
        return t.b.reshape(each, (each.shape[0], *(1 for _ in shape[axis + 1 :])))
    before, blocks, behind = each.shape[:axis], each.shape[axis], each.shape[axis + 1 :]
    apart = t.b.reshape(each, (*before, blocks, 1, *behind))
    grown = t.b.broadcast_to(apart, (*before, blocks, size, *behind))
    return t.b.slice(t.b.reshape(grown, (*before, blocks * size, *behind)), [0], [shape[axis]], [axis])


def _axis(node: OnnxNode) -> int:
    """The axis of the scales; 0 if these are scalars, for which it is ignored."""
    return node.integer("axis", 1) if node.x(1).tensor.rank else 0


def _dequantize(t: Translation, node: OnnxNode) -> Expr:
    x, scale, zero = node.x(0), node.x(1), node.maybe(2)
    kind = node.kind(0)
    if kind is not None and not kind.is_integer:
        distance = widened(t.b, x, kind)
        if zero is not None:
            distance = t.b.subtract(distance, _unfolded(t, node, widened(t.b, zero, kind)))
        return t.b.multiply(t.b.cast(distance, scale.dtype), _unfolded(t, node, scale))
    if not node.dtype.is_integer:
        raise Unsupported(f"elements of {node.dtype}")
    if not node.integer("block_size"):
        return t.b.dequantize_linear(x, scale, zero, axis=_axis(node))
    distance = t.b.cast(x, i32)
    if zero is not None:
        distance = t.b.subtract(distance, t.b.cast(_unfolded(t, node, zero), i32))
    return t.b.multiply(t.b.cast(distance, scale.dtype), _unfolded(t, node, scale))


def point_of(t: Translation, node: OnnxNode, number: int, like: Expr) -> Expr:
    """The zero point in an operand, a scalar or a vector; 0 if it is omitted."""
    zero = node.maybe(number)
    if zero is None:
        return t.b.constant(np.zeros((), like.dtype.numpy))
    return _single(t, zero) if prove_eq(zero.tensor.elements, 1) is Proof.YES else zero


def _matmul_integer(t: Translation, node: OnnxNode) -> Expr:
    a, b = node.x(0), node.x(1)
    zeros = point_of(t, node, 2, a), point_of(t, node, 3, b)
    if any(zero.tensor.rank > 1 for zero in zeros):
        raise Unsupported("its zero points have several axes")
    return t.b.matmul_integer(a, b, *zeros)


def _conv_integer(t: Translation, node: OnnxNode) -> Expr:
    x, weight = node.x(0), node.x(1)
    return _conv_of_distances(t, node, (x, weight), (point_of(t, node, 2, x), point_of(t, node, 3, weight)))


def _conv_of_distances(
    t: Translation, node: OnnxNode, operands: tuple[Expr, Expr], zeros: tuple[Expr, Expr], bias: Expr | None = None
) -> Expr:
    """The convolution of operands minus their zero points, in i32."""
    x, weight = operands
    _check_single(zeros[0])
    total = t.b.call("conv_integer", x, weight, *zeros, attrs=conv_attrs(node, weight))
    return total if bias is None else t.b.add(total, t.b.reshape(bias, (weight.shape[0], *(1 for _ in x.shape[2:]))))


def _qlinear_matmul(t: Translation, node: OnnxNode) -> Expr:
    a, scale_a, zero_a, b, scale_b, zero_b, scale, zero = (node.x(number) for number in range(8))
    _check_single(scale_a, zero_a, scale, zero)
    total = t.b.matmul_integer(a, b, zero_a, zero_b)
    return _requantized(t, total, t.b.multiply(_single(t, scale_a), scale_b), scale, zero)


def _qlinear_conv(t: Translation, node: OnnxNode) -> Expr:
    x, scale_x, _, w, scale_w, _, scale, zero = (node.x(number) for number in range(8))
    _check_single(scale_x, scale, zero)
    zeros = point_of(t, node, 2, x), point_of(t, node, 5, w)
    total = _conv_of_distances(t, node, (x, w), zeros, node.maybe(8))
    factor = t.b.multiply(_single(t, scale_x), scale_w)
    if factor.tensor.rank and factor.shape[0] != 1:
        factor_shape = (factor.shape[0], *(1 for _ in x.shape[2:]))
        return _requantized(t, total, t.b.reshape(factor, factor_shape), scale, zero)
    return _requantized(t, total, _single(t, factor), scale, zero)


def _check_single(*given: Expr) -> None:
    if any(each.tensor.rank and each.shape[0] != 1 for each in given):
        raise Unsupported("its scales or zero points have axes")


def _single(t: Translation, each: Expr) -> Expr:
    return t.b.reshape(each, ()) if each.tensor.rank else each


def _requantized(t: Translation, total: Expr, factor: Expr, scale: Expr, zero: Expr) -> Expr:
    """Requantizes sums of scale `factor` to integers of scale `scale`.

    The sums are multiplied by factor / scale, as the standard does; another order would round ties differently.
    """
    quotient = t.b.divide(t.b.cast(factor, f32), t.b.cast(_single(t, scale), f32))
    return t.b.requantize(total, quotient, _single(t, zero), dtype=zero.dtype)


def _dynamic_quantize(t: Translation, node: OnnxNode) -> list[Expr]:
    x = node.first
    greatest, least = t.b.maximum(t.b.reduce_max(x), 0.0), t.b.minimum(t.b.reduce_min(x), 0.0)
    reach = t.b.subtract(greatest, least)
    # As in onnxruntime; if all elements are 0, the standard would divide by 0.
    scale = t.b.where(t.b.equal(reach, 0.0), 1.0, t.b.divide(reach, 255.0))
    place = t.b.round(t.b.clip(t.b.divide(t.b.subtract(0.0, least), scale), 0.0, 255.0))
    zero = t.b.cast(place, u8)
    return [t.b.quantize_linear(x, scale, zero, axis=0), scale, zero]


QUANTIZATION: Mapping[str, Importer] = {
    "QuantizeLinear": _quantize,
    "DequantizeLinear": _dequantize,
    "MatMulInteger": _matmul_integer,
    "ConvInteger": _conv_integer,
    "QLinearMatMul": _qlinear_matmul,
    "QLinearConv": _qlinear_conv,
    "DynamicQuantizeLinear": _dynamic_quantize,
}
