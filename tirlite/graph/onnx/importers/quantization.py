"""Importers of operators on small integers that stand for floats."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tirlite.graph.expr import Expr
from tirlite.graph.onnx.dtypes import DTYPES
from tirlite.graph.onnx.node import Node, Unsupported
from tirlite.graph.onnx.translation import Importer, Translation
from tirlite.graph.ops import Conv
from tirlite.ir import f32, i32, u8


def _plain_blocks(node: Node) -> None:
    if node.integer("block_size"):
        raise Unsupported("it has a scale for each block")


def _quantize(t: Translation, node: Node) -> Expr:
    _plain_blocks(node)
    zero = node.maybe(2)
    number = node.integer("output_dtype")
    dtype = zero.dtype if zero is not None else DTYPES.get(number, u8) if number else u8
    if not dtype.is_integer or (number and number not in DTYPES):
        raise Unsupported("its results are no integers of 8 or 16 bits")
    return t.b.quantize_linear(node.x(0), node.x(1), zero, axis=_axis(node), dtype=dtype)


def _axis(node: Node) -> int:
    """The axis; only looked at where scales have one."""
    return node.integer("axis", 1) if node.x(1).tensor.rank else 0


def _dequantize(t: Translation, node: Node) -> Expr:
    _plain_blocks(node)
    if not node.dtype.is_integer:
        raise Unsupported(f"elements of {node.dtype}")
    return t.b.dequantize_linear(node.x(0), node.x(1), node.maybe(2), axis=_axis(node))


def _zero(t: Translation, node: Node, number: int, like: Expr) -> Expr:
    given = node.maybe(number)
    return t.b.constant(np.zeros((), like.dtype.numpy)) if given is None else given


def _matmul_integer(t: Translation, node: Node) -> Expr:
    a, b = node.x(0), node.x(1)
    zeros = _zero(t, node, 2, a), _zero(t, node, 3, b)
    if any(zero.tensor.rank > 1 for zero in zeros):
        raise Unsupported("its zero points have several axes")
    return t.b.matmul_integer(a, b, *zeros)


def _conv_integer(t: Translation, node: Node) -> Expr:
    """The convolution of the distances from the zero points, in i32."""
    from_zero = [
        t.b.subtract(t.b.cast(x, i32), _channels(t, t.b.cast(_zero(t, node, 2 + number, x), i32), x, number))
        for number, x in enumerate((node.x(0), node.x(1)))
    ]
    return t.b.call("conv", *from_zero, attrs=_conv_attrs(node))


def _channels(t: Translation, each: Expr, x: Expr, number: int) -> Expr:
    """One number, or for weights one for each output."""
    if each.tensor.rank == 0:
        return each
    if each.shape[0] == 1:
        return t.b.reshape(each, ())
    if number == 0:
        raise Unsupported("the zero point of its operand is no single number")
    return t.b.reshape(each, (each.shape[0], *(1 for _ in x.shape[1:])))


def _conv_attrs(node: Node) -> Conv:
    axes = node.rank - 2
    ones = (1,) * axes
    if node.text("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise Unsupported("its padding depends on its operand")
    pads = node.integers("pads") or (0,) * (2 * axes)
    strides, dilations = node.integers("strides") or ones, node.integers("dilations") or ones
    return Conv(strides, pads, dilations, node.integer("group", 1))


def _qlinear_matmul(t: Translation, node: Node) -> Expr:
    a, scale_a, zero_a, b, scale_b, zero_b, scale, zero = (node.x(number) for number in range(8))
    _check_single(scale_a, zero_a, scale, zero)
    total = t.b.matmul_integer(a, b, zero_a, zero_b)
    return _requantized(t, total, t.b.multiply(_single(t, scale_a), scale_b), scale, zero)


def _qlinear_conv(t: Translation, node: Node) -> Expr:
    x, scale_x, zero_x, w, scale_w, zero_w, scale, zero = (node.x(number) for number in range(8))
    _check_single(scale_x, zero_x, scale, zero)
    parts = [
        t.b.subtract(t.b.cast(each, i32), _channels(t, t.b.cast(point, i32), each, number))
        for number, (each, point) in enumerate(((x, zero_x), (w, zero_w)))
    ]
    bias = () if node.maybe(8) is None else (node.x(8),)
    total = t.b.call("conv", *parts, *bias, attrs=_conv_attrs(node))
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
    """Sums of products, in units of `factor`, as small integers in units of `scale`.

    They are multiplied by the quotient of the two, as the standard has it: another order rounds other halves up.
    """
    quotient = t.b.divide(t.b.cast(factor, f32), t.b.cast(_single(t, scale), f32))
    real = t.b.multiply(t.b.cast(total, f32), quotient)
    return t.b.quantize_linear(real, t.b.constant(np.float32(1)), _single(t, zero), axis=0, dtype=zero.dtype)


def _dynamic_quantize(t: Translation, node: Node) -> list[Expr]:
    x = node.first
    greatest, least = t.b.maximum(t.b.reduce_max(x), 0.0), t.b.minimum(t.b.reduce_min(x), 0.0)
    scale = t.b.divide(t.b.subtract(greatest, least), 255.0)
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
