"""Importers of operators whose operands broadcast against each other, and of products of matrices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

from tirlite.graph.expr import Expr
from tirlite.graph.onnx.contents import contents
from tirlite.graph.onnx.einsum import einsum
from tirlite.graph.onnx.importers.declared import aligned
from tirlite.graph.onnx.node import Node, Unsupported
from tirlite.graph.onnx.translation import Importer, Translation


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
