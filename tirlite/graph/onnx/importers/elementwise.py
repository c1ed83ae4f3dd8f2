"""Importers of operators element by element, whose operands may broadcast, and of products of matrices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

import numpy as np

from tirlite.graph.expr import Constant, Expr
from tirlite.graph.onnx.contents import contents
from tirlite.graph.onnx.dtypes import DTYPES, NUMBERS, dtype_name
from tirlite.graph.onnx.einsum import einsum
from tirlite.graph.onnx.importers.declared import aligned
from tirlite.graph.onnx.narrow import NARROW, NarrowValue, narrowed, widened
from tirlite.graph.onnx.node import Node, Unsupported, wide
from tirlite.graph.onnx.translation import Importer, Translation
from tirlite.ir import DType, f64


def _swish(t: Translation, node: Node) -> Expr:
    alpha = node.number("alpha", 1.0)
    if alpha == 1.0:
        return t.b.silu(node.first)
    return t.b.multiply(node.first, t.b.sigmoid(t.b.multiply(node.first, alpha)))


def _thresholded_relu(t: Translation, node: Node) -> Expr:
    alpha = node.number("alpha", 1.0)
    return t.b.where(t.b.greater(node.first, alpha), node.first, 0.0)


def _shrink(t: Translation, node: Node) -> Expr:
    x, bias, limit = node.first, node.number("bias", 0.0), node.number("lambd", 0.5)
    wide = x if x.dtype.is_float else t.b.cast(x, f64)
    shrunk = t.b.where(t.b.greater(wide, limit), t.b.subtract(wide, bias), 0.0)
    made = t.b.where(t.b.less(wide, -limit), t.b.add(wide, bias), shrunk)
    return made if x.dtype.is_float else t.b.cast(made, x.dtype)


def _isinf(t: Translation, node: Node) -> Expr:
    signs = node.integer("detect_negative", 1), node.integer("detect_positive", 1)
    if not any(signs):
        return t.b.logical_and(t.b.isinf(node.first), False)
    found = t.b.isinf(node.first)
    if signs == (1, 1):
        return found
    side = t.b.less(node.first, 0.0) if signs[0] else t.b.greater(node.first, 0.0)
    return t.b.logical_and(found, side)


def _cast(t: Translation, node: Node) -> Expr | NarrowValue:
    return _converted(t, node, node.integer("to"))


def _cast_like(t: Translation, node: Node) -> Expr | NarrowValue:
    kind = node.kind(1)
    numbers = {each: number for number, each in NARROW.items()}
    return _converted(t, node, NUMBERS[node.x(1).dtype] if kind is None else numbers[kind])


def _converted(t: Translation, node: Node, to: int) -> Expr | NarrowValue:
    """The first operand as elements of the type of this number."""
    x, of = node.first, node.kind(0)
    target = NARROW.get(to)
    if target is not None and target == of:
        return NarrowValue(x, target)
    if of is not None:
        x = widened(t.b, x, of)
    if target is None:
        return t.b.cast(x, _type(to))
    if x.dtype.is_float and x.dtype.bits == 64:
        raise Unsupported(f"elements of f64 would be rounded twice on the way to {target.name}")
    how = node.text("round_mode", "up")
    return NarrowValue(narrowed(t.b, x, target, saturate=node.flag("saturate", 1), rounding=how), target)


def _bit_cast(t: Translation, node: Node) -> Expr | NarrowValue:
    x, to = node.first, node.integer("to")
    if node.kind(0) is None and to not in NARROW:
        return t.b.bitcast(x, _type(to))
    raise Unsupported("the bits of elements of less than 8 bits, and of floats of 8 bits, are not told")


def _type(number: int) -> DType:
    if number not in DTYPES:
        raise Unsupported(f"there is no element type {dtype_name(number)} here")
    return DTYPES[number]


def _clip(t: Translation, node: Node) -> Expr:
    x = node.first
    if node.version < 11:
        low, high = node.attributes.get("min"), node.attributes.get("max")
        return t.b.clip(x, _limit(low, x.dtype), _limit(high, x.dtype))
    limits = node.maybe(1), node.maybe(2)
    if all(each is None or isinstance(each, Constant) for each in limits):
        low, high = (wide(each).reshape(-1)[0].item() if isinstance(each, Constant) else None for each in limits)
        return t.b.clip(x, low, high)
    for limit, pick in zip(limits, (t.b.maximum, t.b.minimum), strict=True):
        x = x if limit is None else pick(x, t.b.reshape(limit, ()))
    return x


def _limit(given: object, dtype: DType) -> float | int | None:
    if given is None:
        return None
    assert isinstance(given, float)
    if dtype.is_float:
        info = np.finfo(np.float32)
        return None if given <= info.min or given >= info.max else given
    return int(given)


def _dropout(t: Translation, node: Node) -> list[Expr]:
    if node.has(2) and bool(node.array(2).reshape(-1)[0]):
        ratio = float(node.array(1).reshape(-1)[0]) if node.has(1) else 0.5
        if ratio:
            raise Unsupported("it drops elements, as in training")
    x = t.b.identity(node.first)
    if not node.wants(1):
        return [x]
    kept = t.b.constant(np.array(True))
    mask = t.b.broadcast_to(kept, x.shape)
    return [x, mask if node.version >= 10 else t.b.cast(mask, x.dtype)]


ELEMENTWISE: Mapping[str, Importer] = {
    "Swish": _swish,
    "ThresholdedRelu": _thresholded_relu,
    "Shrink": _shrink,
    "IsInf": _isinf,
    "BitCast": _bit_cast,
    "Cast": _cast,
    "CastLike": _cast_like,
    "Clip": _clip,
    "Dropout": _dropout,
}


def _refuse_zero(divisor: Expr) -> None:
    """Raises Unsupported for integers that are 0 whatever the model is called with."""
    known = contents(divisor)
    if known is not None and any(each == 0 for each in known.reshape(-1)):
        raise Unsupported("it divides integers by 0")


def _div(t: Translation, node: Node) -> Expr:
    x, y = aligned(t, node)
    _refuse_zero(y)
    return t.b.divide(x, y) if x.dtype.is_float else t.b.trunc_divide(x, y)


def _mod(t: Translation, node: Node) -> Expr:
    x, y = node.x(0), node.x(1)
    _refuse_zero(y)
    return t.b.trunc_mod(x, y) if node.flag("fmod") else t.b.floor_mod(x, y)


def _pow(t: Translation, node: Node) -> Expr:
    x, y = aligned(t, node)
    if x.dtype == y.dtype:
        return t.b.power(x, y)
    if x.dtype.is_float:
        return t.b.power(x, t.b.cast(y, x.dtype))
    if y.dtype.is_float:
        return t.b.cast(t.b.power(t.b.cast(x, y.dtype), y), x.dtype)
    return t.b.power(x, t.b.cast(y, x.dtype))


def _shift(t: Translation, node: Node) -> Expr:
    shift = t.b.shift_left if node.text("direction") == "LEFT" else t.b.shift_right
    return shift(node.x(0), node.x(1))


def _folded(name: str) -> Callable[[Translation, Node], Expr]:
    """Operators of any number of operands, two at a time."""

    def importer(t: Translation, node: Node) -> Expr:
        first, *rest = node.all()
        return reduce(lambda a, b: t.b.call(name, a, b), rest, first)

    return importer


def _mean(t: Translation, node: Node) -> Expr:
    operands = node.all()
    total = reduce(t.b.add, operands)
    return t.b.divide(total, float(len(operands)))


def _prelu(t: Translation, node: Node) -> Expr:
    x, slope = node.x(0), node.x(1)
    if node.version < 7 and slope.tensor.rank == 1:
        slope = t.b.reshape(slope, (*slope.shape, *(1 for _ in x.shape[2:])))
    if not x.dtype.is_float:
        return t.b.where(t.b.less(x, 0), t.b.multiply(x, slope), x)
    return t.b.prelu(x, slope)


def _einsum(t: Translation, node: Node) -> Expr:
    return einsum(t.b, node.text("equation"), node.all())


BINARY: Mapping[str, Importer] = {
    "Div": _div,
    "Mod": _mod,
    "Pow": _pow,
    "BitShift": _shift,
    "Sum": _folded("add"),
    "Max": _folded("maximum"),
    "Min": _folded("minimum"),
    "Mean": _mean,
    "PRelu": _prelu,
    "Einsum": _einsum,
}
