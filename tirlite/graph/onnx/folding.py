"""Folds all values that are known before a run: constants, and computations on shapes.

Operators on constants are evaluated by their reference meaning; those on integers that depend on dims, such as the
results of Shape, are evaluated on sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from tirlite.graph.demands import Demands
from tirlite.graph.evaluate import apply
from tirlite.graph.expr import Call, Constant, Expr, If, Tuple, TupleGetItem, rebuilt
from tirlite.graph.extents import product
from tirlite.graph.onnx.budget import Spent
from tirlite.graph.onnx.contents import Contents, FloatSizes, contents, moved, of_each, of_sizes, operator, taken_from
from tirlite.graph.op import Op, Reshape
from tirlite.graph.operators.elementwise import Cast
from tirlite.graph.operators.reduction import Reduce
from tirlite.graph.types import TensorType, tensors
from tirlite.sizes import Proof, Size, is_at_most, maximum, minimum, prove_eq, prove_le, prove_lt

# Constants of more elements are not compared by their values.
_MOST_NUMBERS = 16


class Folding:
    """The folded values so far; each is computed once."""

    def __init__(self, spent: Spent, demands: Demands) -> None:
        """Sizes that are computed through floats add their limits to `demands`."""
        self.floats = FloatSizes()
        self._demands = demands
        self._folded: dict[Expr, Expr] = {}
        self._split: dict[Call, tuple[Expr, ...]] = {}
        self._alike: dict[tuple[object, ...], Call] = {}
        self._spent = spent

    def __call__(self, expr: Expr) -> Expr:
        """The value, with all operators folded whose operands are known."""
        stack = [expr]
        while stack:
            top = stack[-1]
            waiting = [each for each in top.operands if each not in self._folded and each.operands]
            if top in self._folded or not waiting:
                stack.pop()
                if top not in self._folded:
                    made = self._step(top)
                    self._folded[top] = made
                    self._folded.setdefault(made, made)
            else:
                stack += waiting
        return self._folded[expr]

    def _step(self, expr: Expr) -> Expr:
        if isinstance(expr, Tuple):
            return expr
        made = rebuilt(expr, lambda each: self._folded.get(each, each))
        if isinstance(made, TupleGetItem) and isinstance(made.value, Call):
            parts = self._split.get(made.value)
            return made if parts is None else parts[made.index]
        if isinstance(made, If) and isinstance(made.condition, Constant):
            return made.then if made.condition.value else made.other
        return self._call(made) if isinstance(made, Call) else made

    def _call(self, call: Call) -> Expr:
        if not isinstance(call.op, Op) or operator(call) == "sizes":
            return call
        if operator(call) == "identity" or _changes_nothing(call):
            return call.args[0]
        made = self._computed(call) if all(isinstance(arg, Constant) for arg in call.args) else None
        if made is None and len(found := [contents(arg) for arg in call.args]) == len(call.args):
            made = self._sized(call, found)
        if made is None:
            self.floats.note(call)
            made = self._from_floats(call)
        if made is None:
            return self._shared(call)
        if isinstance(call.type, TensorType):
            return made[0]
        self._split[call] = made
        return call

    def _shared(self, call: Call) -> Call:
        """The call, or an earlier one with the same integers: a number that is read twice is one extent."""
        if not isinstance(call.type, TensorType) or not call.dtype.is_integer or call.tensor.rank > 1:
            return call
        key: tuple[object, ...] = (call.op.name, call.attrs, call.device, *map(_identity, call.args))
        if product(call.shape) == 1 and (place := _place(call)) != (call, 0):
            key = (*place, call.shape)
        return self._alike.setdefault(key, call)

    def _computed(self, call: Call) -> tuple[Expr, ...] | None:
        """The results, by the reference meaning, of operands that are constant; weights stay the integers they are."""
        if operator(call) == "dequantize_linear":
            return None
        types = tensors(call.type)
        if call.attrs.symbolic_sizes() or any(not isinstance(each, int) for of in types for each in of.shape):
            return None
        size = sum(prod(int(str(each)) for each in of.shape) * of.dtype.bytes for of in types)
        if size > self._spent.budget.folded:
            return None
        self._spent.constant(size, call.span)
        values = apply(call, [arg.value for arg in call.args if isinstance(arg, Constant)], {})
        arrays = values if isinstance(values, tuple) else (values,)
        return tuple(_constant(np.asarray(each), of, call) for each, of in zip(arrays, types, strict=True))

    def _from_floats(self, call: Call) -> tuple[Expr, ...] | None:
        """The sizes that floats are cast to."""
        attrs = call.attrs
        if not isinstance(attrs, Cast) or not attrs.dtype.is_integer or attrs.dtype.bits < 32:
            return None
        found = self.floats.of(call.args[0]) if call.args[0].dtype.is_float else None
        return (
            None if found is None or (made := self.whole(found, call)) is None else (of_sizes(made, attrs.dtype, call),)
        )

    def whole(self, ratios: Contents, call: Expr) -> Contents | None:
        """The sizes that ratios are when they are rounded to zero; their limits are demanded of each call."""
        made = np.empty(ratios.shape, object)
        for place, each in np.ndenumerate(ratios):
            if (truncated := each.truncated) is None:
                return None
            made[place] = truncated.size
            for limit in each.limits:
                name = f"{call.name} = {call.op.name}" if isinstance(call, Call) and call.name else "arithmetic"
                self._demands.assume(limit.size, limit.most, f"{name} of floats", call.span, is_most=True)
        return made

    def _sized(self, call: Call, found: Sequence[object]) -> tuple[Expr, ...] | None:
        """The results, computed on sizes, of operands that hold integers."""
        rule = SHAPE_ARITHMETIC.get(operator(call))
        made = None if rule is None else rule(call, found)
        if made is None:
            return None
        return tuple(
            of_sizes(each, of.dtype, call) if of.dtype.is_integer else _constant(each.astype(bool), of, call)
            for each, of in zip(made, tensors(call.type), strict=True)
        )


def _changes_nothing(call: Call) -> bool:
    """Whether a call returns its operand unchanged, and demands nothing of it."""
    attrs = call.attrs
    if isinstance(attrs, Reshape):
        return attrs.shape == call.args[0].shape and not attrs.told
    return isinstance(attrs, Cast) and attrs.dtype == call.args[0].dtype


def _place(expr: Expr) -> tuple[Expr, int]:
    """The original tensor of a value with one element, and the place there."""
    place = 0
    while (before := taken_from(expr, place)) is not None:
        expr, place = before
    return expr, place


def _identity(arg: Expr) -> object:
    """A key that is equal for equal operands; small constants are compared by value."""
    if isinstance(arg, Constant) and arg.value.size <= _MOST_NUMBERS:
        return arg.dtype, arg.shape, arg.value.tobytes()
    return arg


def _constant(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]], of: TensorType, like: Call) -> Constant:
    kept = np.asarray(array, order="C")
    if kept.base is not None or kept.flags.writeable:
        kept = kept if kept.base is None else kept.copy()
        kept.flags.writeable = False
    return Constant(kept, of.dtype, name=like.name, span=like.span, device=like.device)


Operand: TypeAlias = "Contents | None"
Rule: TypeAlias = Callable[[Call, Sequence[Any]], "tuple[Contents, ...] | None"]


def _moved(call: Call, given: Sequence[Any]) -> tuple[Contents, ...] | None:
    return None if any(each is None for each in given) or call.attrs.symbolic_sizes() else moved(call, given)


def _gathered(call: Call, given: Sequence[Any]) -> tuple[Contents, ...] | None:
    values = given[0]
    if values is None or not isinstance(call.args[1], Constant):
        return None
    return _moved(call, (values, call.args[1].value))


def _each(function: Callable[[Any, Any], Size | bool | None]) -> Rule:
    """A function of two sizes for each element; it may return None."""

    def rule(call: Call, given: Sequence[Any]) -> tuple[Contents, ...] | None:
        if any(each is None for each in given):
            return None
        made = of_each(function, *given)
        return None if made is None else (made,)

    return rule


def _divided(a: Any, b: Any) -> Size | None:
    """Towards zero, which is downwards where nothing is negative."""
    if isinstance(a, int) and isinstance(b, int) and b:
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    if prove_lt(0, b) is not Proof.YES:
        return None
    if is_at_most(0, a):
        return a // b  # type: ignore[no-any-return]
    # One of the two is 0. Nothing may be wrong where a dim is small: how many windows fit is computed so.
    up: Size = maximum(0, a) // b
    down: Size = maximum(0, 0 - a) // b
    return up - down


def _floored(a: Any, b: Any) -> Size | None:
    return a // b if is_at_most(1, b) else None


def _remainder(a: Any, b: Any) -> Size | None:
    return a - a // b * b if is_at_most(1, b) else None


def _compared(proof: Callable[[Any, Any], Proof]) -> Callable[[Any, Any], bool | None]:
    return lambda a, b: {Proof.YES: True, Proof.NO: False}.get(proof(a, b))


def _negated(rule: Callable[[Any, Any], bool | None]) -> Callable[[Any, Any], bool | None]:
    def opposite(a: Any, b: Any) -> bool | None:
        found = rule(a, b)
        return None if found is None else not found

    return opposite


def _cast(call: Call, given: Sequence[Any]) -> tuple[Contents, ...] | None:
    attrs = call.attrs
    assert isinstance(attrs, Cast)
    (values,) = given
    return (values,) if values is not None and attrs.dtype.is_integer and attrs.dtype.bits >= 32 else None


def _where(call: Call, given: Sequence[Any]) -> tuple[Contents, ...] | None:
    condition, (_, x, y) = call.args[0], given
    if not isinstance(condition, Constant) or x is None or y is None:
        return None
    return (np.where(condition.value, x, y),)


def _reduced(function: Callable[[Any, Any], Size], start: int) -> Rule:
    def rule(call: Call, given: Sequence[Any]) -> tuple[Contents, ...] | None:
        attrs = call.attrs
        assert isinstance(attrs, Reduce)
        (values,) = given
        if values is None or values.ndim > 1:
            return None
        if not attrs.axes:
            return (values,)
        total: Size = start
        for each in values.reshape(-1):
            total = function(total, each)
        result = np.empty((1,) if attrs.keepdims else (), object)
        result[...] = total
        return (result,)

    return rule


def _negative(call: Call, given: Sequence[Any]) -> tuple[Contents, ...] | None:
    return None if given[0] is None else (np.asarray(0 - given[0], object),)


def _absolute(call: Call, given: Sequence[Any]) -> tuple[Contents, ...] | None:
    if given[0] is None or any(not is_at_most(0, each) for each in given[0].reshape(-1)):
        return None
    return (given[0],)


_LESS, _AT_MOST, _SAME = (_compared(proof) for proof in (prove_lt, prove_le, prove_eq))

SHAPE_ARITHMETIC: Mapping[str, Rule] = {
    **dict.fromkeys(["broadcast_to", "concat", "reshape", "slice", "split", "tile", "transpose"], _moved),
    "gather": _gathered,
    "add": _each(lambda a, b: a + b),
    "subtract": _each(lambda a, b: a - b),
    "multiply": _each(lambda a, b: a * b),
    "trunc_divide": _each(_divided),
    "floor_divide": _each(_floored),
    "floor_mod": _each(_remainder),
    "trunc_mod": _each(lambda a, b: _remainder(a, b) if is_at_most(0, a) else None),
    "maximum": _each(maximum),
    "minimum": _each(minimum),
    "equal": _each(_SAME),
    "not_equal": _each(_negated(_SAME)),
    "less": _each(_LESS),
    "less_equal": _each(_AT_MOST),
    "greater": _each(lambda a, b: _LESS(b, a)),
    "greater_equal": _each(lambda a, b: _AT_MOST(b, a)),
    "negative": _negative,
    "abs": _absolute,
    "relu": _absolute,
    "cast": _cast,
    "where": _where,
    "reduce_sum": _reduced(lambda a, b: a + b, 0),
    "reduce_prod": _reduced(lambda a, b: a * b, 1),
}
