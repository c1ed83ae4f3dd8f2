"""Operators that reduce tensors along some axes. Sums of integers wrap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from tirlite.graph.builder.calls import CallBuilder, Member, Operand, Rule, operator
from tirlite.graph.expr import Call
from tirlite.graph.extents import Shape
from tirlite.graph.op import Array, Attrs, Lowering, Meaning, NodeAttributes, Site, Spelling
from tirlite.graph.operators.operands import BOOLS, FLOATS, NUMBERS, Elements
from tirlite.graph.types import TensorType
from tirlite.ir import PrimFunc, i64
from tirlite.late import LateModule
from tirlite.record import record

# The building blocks of reduction kernels, imported when one is compiled.
k: Any = LateModule("tirlite.kernels.operators.reduce")


@record
class Reduce(Attrs):
    """The reduced axes, and whether they stay with extent 1."""

    axes: tuple[int, ...]
    keepdims: bool = False


@record
class Arg(Attrs):
    """The axis, whether it stays with extent 1, and whether the last of equal elements is returned."""

    axis: int = -1
    keepdims: bool = False
    last: bool = False


@record
class CumSum(Attrs):
    """The axis; whether each element is excluded from its own sum or product; whether to start at the end."""

    axis: int = -1
    exclusive: bool = False
    reverse: bool = False


def _without(shape: Shape, axes: tuple[int, ...], *, keepdims: bool) -> Shape:
    if keepdims:
        return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    return tuple(extent for axis, extent in enumerate(shape) if axis not in axes)


def _reduce(elements: Elements) -> Callable[..., TensorType]:
    def rule(site: Site, attrs: Reduce) -> TensorType:
        x = elements.first(site)
        axes = site.axes(attrs.axes, x.rank)
        return TensorType(_without(x.shape, axes, keepdims=attrs.keepdims), x.dtype)

    return rule


def _arg_type(site: Site, attrs: Arg) -> TensorType:
    x = site.tensor(0)
    axis = site.axis(attrs.axis, x.rank)
    if not site.is_most(1, x.shape[axis]):
        raise site.mismatch(f"axis {axis} is empty, and has no greatest or least element")
    return TensorType(_without(x.shape, (axis,), keepdims=attrs.keepdims), i64)


def _cumsum_type(site: Site, attrs: CumSum) -> TensorType:
    x = NUMBERS.first(site)
    site.axis(attrs.axis, x.rank)
    return x


_NUMBERS, _FLOATS, _BOOLS = map(_reduce, (NUMBERS, FLOATS, BOOLS))


def _over_axes(function: Callable[..., Any]) -> Meaning:
    def meaning(attrs: Reduce, x: Array) -> Array:
        return np.asarray(function(x, axis=attrs.axes, keepdims=attrs.keepdims)).astype(x.dtype, copy=False)

    return meaning


def _sum(x: Array, **over: Any) -> Any:
    return np.sum(x, dtype=x.dtype, **over)


def _greatest(x: Array, **over: Any) -> Any:
    return np.max(x, initial=-np.inf if x.dtype.kind not in "iu" else np.iinfo(x.dtype).min, **over)


def _least(x: Array, **over: Any) -> Any:
    return np.min(x, initial=np.inf if x.dtype.kind not in "iu" else np.iinfo(x.dtype).max, **over)


def _log_sum_exp(x: Array, axis: tuple[int, ...], keepdims: bool) -> Any:
    most = _greatest(x, axis=axis, keepdims=True)
    most = np.where(np.isfinite(most), most, x.dtype.type(0))
    result = np.log(np.exp(x - most).sum(axis, keepdims=True)) + most
    return result if keepdims else result.squeeze(axis)


def _arg(function: Callable[..., Any]) -> Meaning:
    def meaning(attrs: Arg, x: Array) -> Array:
        if not attrs.last:
            return np.asarray(function(x, axis=attrs.axis, keepdims=attrs.keepdims))
        flipped = function(np.flip(x, attrs.axis), axis=attrs.axis, keepdims=attrs.keepdims)
        return np.asarray(x.shape[attrs.axis] - 1 - flipped)

    return meaning


def _running(function: Callable[..., Any], start: int) -> Meaning:
    def meaning(attrs: CumSum, x: Array) -> Array:
        ordered = np.flip(x, attrs.axis) if attrs.reverse else x
        made = np.asarray(function(ordered, attrs.axis, dtype=x.dtype))
        if attrs.exclusive:
            made = np.roll(made, 1, attrs.axis)
            np.moveaxis(made, attrs.axis, 0)[:1] = start
        return np.flip(made, attrs.axis) if attrs.reverse else made

    return meaning


Axes: TypeAlias = "int | Sequence[int] | None"


def _arg_of(node: NodeAttributes) -> Arg:
    return Arg(node.axis("axis", 0), node.flag("keepdims", 1), node.flag("select_last_index"))


class Reducer(Protocol):
    """A builder method of a reduction along axes."""

    def __call__(self, x: Operand, axes: Axes = None, *, keepdims: bool = False) -> Call: ...


def _call(g: CallBuilder, name: str, x: Operand, axes: Axes, *, keepdims: bool) -> Call:
    (value,) = g._operands([x], g._here())
    if axes is None:
        axes = range(value.tensor.rank)
    found = (axes,) if isinstance(axes, int) else tuple(axes)
    return g.call(name, value, attrs=Reduce(found, keepdims))


def _reduced(
    doc: str, rule: Rule, function: Callable[..., Any], steps: Callable[[], tuple[Any, ...]]
) -> Member[Reducer]:
    """A reduction: its documentation, type rule, NumPy function, and the steps of its kernel.

    The steps are a map of each element, the combination of two, the start value, and a map of the result.
    """

    def make(name: str) -> Callable[..., Call]:
        def method(self: CallBuilder, x: Operand, axes: Axes = None, *, keepdims: bool = False) -> Call:
            return _call(self, name, x, axes, keepdims=keepdims)

        return method

    def declare(name: str) -> Callable[[Any], Any]:
        def joined(*types: object, **attrs: object) -> PrimFunc:
            made: PrimFunc = k.reduce(name, k.Reduction(*steps()), *types, **attrs)
            return made

        return operator(rule, _over_axes(function), Lowering(joined), attrs=Reduce)

    return Member(doc, make, declare)


class Reduction(CallBuilder):
    """Reductions along the given axes, or all; with `keepdims` these stay with extent 1.

    Unless stated otherwise they accept any type of numbers, and integers wrap.
    """

    reduce_sum = _reduced("The sum.", _NUMBERS, _sum, lambda: (k.as_it_is, k.added, 0))
    reduce_mean = _reduced("The mean, of floats.", _FLOATS, np.mean, lambda: (k.as_it_is, k.added, 0, k.mean))
    reduce_max = _reduced(
        "The greatest element; of none what is below all.",
        _NUMBERS,
        _greatest,
        lambda: (k.as_it_is, k.greatest, -np.inf),
    )
    reduce_min = _reduced(
        "The least element; of none what is above all.", _NUMBERS, _least, lambda: (k.as_it_is, k.least, np.inf)
    )
    reduce_prod = _reduced(
        "The product.",
        _NUMBERS,
        lambda x, **over: np.prod(x, dtype=x.dtype, **over),
        lambda: (k.as_it_is, k.multiplied, 1),
    )
    reduce_l1 = _reduced(
        "The sum of the absolute values.",
        _NUMBERS,
        lambda x, **over: _sum(np.abs(x), **over),
        lambda: (k.size, k.added, 0),
    )
    reduce_l2 = _reduced(
        "The root of the sum of the squares, of floats.",
        _FLOATS,
        lambda x, **over: np.sqrt(_sum(x * x, **over)),
        lambda: (k.square, k.added, 0, k.root),
    )
    reduce_sum_square = _reduced(
        "The sum of the squares.", _NUMBERS, lambda x, **over: _sum(x * x, **over), lambda: (k.square, k.added, 0)
    )
    reduce_log_sum = _reduced(
        "The logarithm of the sum, of floats.",
        _FLOATS,
        lambda x, **over: np.log(_sum(x, **over)),
        lambda: (k.as_it_is, k.added, 0, k.logarithm),
    )
    reduce_all = _reduced("Whether all hold, of bools.", _BOOLS, np.all, lambda: (k.as_it_is, k.least, 1))
    reduce_any = _reduced("Whether one holds, of bools.", _BOOLS, np.any, lambda: (k.as_it_is, k.greatest, 0))

    @operator(_FLOATS, _over_axes(_log_sum_exp), "reduce.log_sum_exp", attrs=Reduce)
    def reduce_log_sum_exp(self, x: Operand, axes: Axes = None, *, keepdims: bool = False) -> Call:
        """The logarithm of the sum of the exponentials, of floats."""
        return _call(self, "reduce_log_sum_exp", x, axes, keepdims=keepdims)

    @operator(_arg_type, _arg(np.argmax), "order.argmax", attrs=Arg, onnx=Spelling("ArgMax", _arg_of))
    def argmax(self, x: Operand, axis: int = -1, *, keepdims: bool = False, last: bool = False) -> Call:
        """The index of the greatest element along an axis, as i64: the first of equal ones, or with `last` the last."""
        return self.call("argmax", x, attrs=Arg(axis, keepdims, last))

    @operator(_arg_type, _arg(np.argmin), "order.argmin", attrs=Arg, onnx=Spelling("ArgMin", _arg_of))
    def argmin(self, x: Operand, axis: int = -1, *, keepdims: bool = False, last: bool = False) -> Call:
        """The index of the least element along an axis, as i64: the first of equal ones, or with `last` the last."""
        return self.call("argmin", x, attrs=Arg(axis, keepdims, last))

    @operator(_cumsum_type, _running(np.cumsum, 0), "order.cumsum", attrs=CumSum)
    def cumsum(self, x: Operand, axis: int = -1, *, exclusive: bool = False, reverse: bool = False) -> Call:
        """The cumulative sums along an axis; `exclusive` of each element itself, in `reverse` from the end."""
        return self.call("cumsum", x, attrs=CumSum(axis, exclusive, reverse))

    @operator(_cumsum_type, _running(np.cumprod, 1), "order.cumprod", attrs=CumSum)
    def cumprod(self, x: Operand, axis: int = -1, *, exclusive: bool = False, reverse: bool = False) -> Call:
        """The cumulative products along an axis; see `cumsum`."""
        return self.call("cumprod", x, attrs=CumSum(axis, exclusive, reverse))
