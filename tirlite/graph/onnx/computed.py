"""Sizes that a model computes from data: each element of a vector is known from shapes, or at run time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tirlite.graph.expr import Call, Expr
from tirlite.graph.extents import is_equal, product
from tirlite.graph.onnx.contents import contents, of_sizes, operator, taken_from
from tirlite.graph.onnx.node import OnnxNode, Unsupported
from tirlite.graph.onnx.translation import Translation
from tirlite.graph.op import Axis, Op
from tirlite.graph.operators.elementwise import Cast
from tirlite.ir import i64
from tirlite.sizes import Size, as_size


def elements_of(t: Translation, x: Expr, count: Size | None = None) -> list[Size | Expr]:
    """The elements of a vector of `count` integers: sizes if they are known, else values."""
    known = contents(x)
    if known is not None:
        return list(known.reshape(-1).tolist())
    count = product(x.shape) if count is None else count
    if not isinstance(count, int):
        raise Unsupported("how many integers an input holds is not known")
    found = [_element(t, x, place) for place in range(count)]
    sizes = map(contents, found)
    return [each if size is None else as_size(size.item()) for each, size in zip(found, sizes, strict=True)]


def sizes_of(t: Translation, node: OnnxNode, number: int, count: Size | None = None) -> list[Size]:
    """The integers of an operand as extents; those computed from data are run-time extents without a bound."""
    return [extent_of(t, each) for each in elements_of(t, node.x(number), count)]


def extent_of(t: Translation, value: Size | Expr) -> Size:
    """A size, or a value as a run-time extent."""
    return t.extent(value, None) if isinstance(value, Expr) else value


def scalar(t: Translation, value: Size | Expr) -> Expr:
    """An integer without axes."""
    if isinstance(value, Expr):
        return t.b.cast(value, i64)
    return of_sizes(np.array(value, object), i64, t.b.constant(np.int64(0)))


def numbers(t: Translation, count: Size) -> Expr:
    """The integers from 0 to below `count`, as i64."""
    return t.b.range(np.int64(0), np.int64(1), count)


def _element(t: Translation, x: Expr, place: int) -> Expr:
    """One element as a scalar, computed without the others as far as possible."""
    known = contents(x)
    if known is not None:
        return of_sizes(np.array(known.reshape(-1)[place], object), x.dtype, x)
    if (before := taken_from(x, place)) is not None:
        return _element(t, *before)
    made = _through(t, x, place) if isinstance(x, Call) and isinstance(x.op, Op) else None
    if made is None:
        count = product(x.shape)
        made = x if count == 1 else t.b.slice(t.b.reshape(x, (count,)), [place], [place + 1])
        made = t.b.reshape(made, ())
    return t.fold(made)


def _through(t: Translation, x: Call, place: int) -> Expr | None:
    """One element of an operator's result from elements of its operands; None if it needs several of one operand."""
    if isinstance(x.attrs, Cast):
        return t.b.cast(_element(t, x.args[0], place), x.attrs.dtype)
    if x.tensor.rank > 1 or any(arg.tensor.rank > 1 for arg in x.args):
        return None
    if operator(x) == "concat" and isinstance(x.attrs, Axis):
        return _joined(t, x.args, place)
    if isinstance(x.op, Op) and x.op.is_elementwise:
        count = product(x.shape)
        alike = [is_equal(product(arg.shape), count) for arg in x.args]
        if all(same or product(arg.shape) == 1 for arg, same in zip(x.args, alike, strict=True)):
            parts = [_element(t, arg, place if same else 0) for arg, same in zip(x.args, alike, strict=True)]
            return t.b.call(x.op.name, *parts, attrs=x.attrs)
    return None


def _joined(t: Translation, parts: Sequence[Expr], place: int) -> Expr | None:
    for part in parts:
        count = product(part.shape)
        if not isinstance(count, int):
            return None
        if place < count:
            return _element(t, part, place)
        place -= count
    return None
