"""Tells the elements of a graph's value where they are known before a run: constants, and integers made of dims."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tirlite.graph.expr import Call, Constant, Expr, TupleGetItem
from tirlite.graph.extents import Shape
from tirlite.graph.op import Op, Sizes
from tirlite.graph.operators.arrangement import Slice, Split
from tirlite.graph.registry import OPS
from tirlite.graph.types import TensorType
from tirlite.ir import DType, TypeCode
from tirlite.sizes import Size, as_size

Contents = npt.NDArray[Any]

# Operators that leave the elements in their order.
_SAME_ORDER = frozenset({"reshape", "assume", "identity"})

# More elements than any shape has are data, not sizes.
_MOST = 4096


def contents(expr: Expr) -> Contents | None:
    """The elements, as an array of sizes, where they are integers that are known for all values of the dims."""
    if isinstance(expr, Constant) and expr.dtype.is_integer and expr.value.size <= _MOST:
        return boxed(expr.value.tolist(), expr.value.shape)
    if isinstance(expr, Call) and isinstance(expr.attrs, Sizes):
        return boxed(list(expr.attrs.elements), tuple(map(int, map(str, expr.attrs.extents))))
    return None


def boxed(elements: Any, shape: tuple[int, ...]) -> Contents:
    """An array of Python objects."""
    made = np.empty(shape, object)
    flat = np.empty(made.size, object)
    values = [elements]
    while values and isinstance(values[0], list):
        values = [inner for each in values for inner in each]
    flat[:] = [as_size(each) for each in values] if made.size else []
    return flat.reshape(shape)


def of_sizes(values: Contents, dtype: DType, like: Expr) -> Expr:
    """A value with these elements: a constant where none of them depends on a dim, else a call of `sizes`."""
    elements: list[Size] = [as_size(each) for each in np.asarray(values, object).reshape(-1).tolist()]
    shape: Shape = values.shape
    if all(isinstance(each, int) for each in elements):
        array = np.array([_wrapped(each, dtype) for each in elements], dtype.numpy).reshape(values.shape)
        array.flags.writeable = False
        return Constant(array, dtype, span=like.span, device=like.device)
    attrs = Sizes(tuple(elements), shape, dtype)
    return Call(OPS["sizes"], (), attrs, span=like.span, device=like.device)


def _wrapped(value: Any, dtype: DType) -> int:
    """The integer that the type holds for it."""
    low = value & ((1 << dtype.bits) - 1)
    signed = dtype.code is TypeCode.INT and low >> (dtype.bits - 1)
    return int(low - (1 << dtype.bits) if signed else low)


def operator(expr: Expr) -> str:
    """The name of the operator that an expression calls, or ""."""
    return expr.op.name if isinstance(expr, Call) and isinstance(expr.op, Op) else ""


def taken_from(one: Expr, place: int) -> tuple[Expr, int] | None:
    """What the last operator takes an element from, and its place in that; None where it makes the element.

    Places count elements in their order, whatever the shape.
    """
    call = one.value if isinstance(one, TupleGetItem) else one
    if not isinstance(call, Call) or not call.args:
        return None
    x, attrs = call.args[0], call.attrs
    if operator(call) in _SAME_ORDER:
        return x, place
    if not isinstance(x.type, TensorType) or x.tensor.rank != 1:
        return None
    if isinstance(attrs, Split) and isinstance(one, TupleGetItem):
        start = sum(attrs.sizes[: one.index], start=as_size(0))
        return (x, start + place) if isinstance(start, int) else None
    if isinstance(attrs, Slice) and isinstance(start := attrs.starts[0], int):
        return x, start + place * attrs.steps[0]
    if operator(call) == "gather" and isinstance(index := call.args[1], Constant) and isinstance(x.shape[0], int):
        return x, int(index.value.reshape(-1)[place]) % x.shape[0]
    return None
