"""Computes the results of an operator on operands of sizes: the arithmetic that models do with shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from tirlite.graph.expr import Call, Constant
from tirlite.graph.onnx.contents import Contents
from tirlite.graph.operators.elementwise import Cast
from tirlite.graph.operators.reduction import Reduce
from tirlite.graph.registry import OPS
from tirlite.ir import DType
from tirlite.sizes import Proof, Size, maximum, minimum, prove_eq, prove_le, prove_lt

Operand: TypeAlias = "Contents | None"
Rule: TypeAlias = Callable[[Call, Sequence[Any]], "tuple[Contents, ...] | None"]


def _moved(call: Call, given: Sequence[Any]) -> tuple[Contents, ...] | None:
    """Operators that put elements elsewhere do with sizes what they do with numbers."""
    if any(each is None for each in given) or call.attrs.symbolic_sizes():
        return None
    made = OPS[call.op.name].means(call.attrs, *given)
    return tuple(np.asarray(each, object) for each in (made if isinstance(made, tuple) else (made,)))


def _gathered(call: Call, given: Sequence[Any]) -> tuple[Contents, ...] | None:
    values = given[0]
    if values is None or not isinstance(call.args[1], Constant):
        return None
    return _moved(call, (values, call.args[1].value))


def _each(function: Callable[[Any, Any], Size | bool | None]) -> Rule:
    """A function of two sizes, which may not be able to tell, for each element."""

    def rule(call: Call, given: Sequence[Any]) -> tuple[Contents, ...] | None:
        if any(each is None for each in given):
            return None
        a, b = np.broadcast_arrays(*given)
        made = [function(x, y) for x, y in zip(a.reshape(-1), b.reshape(-1), strict=True)]
        if any(each is None for each in made):
            return None
        result = np.empty(len(made), object)
        result[:] = made
        return (result.reshape(a.shape),)

    return rule


def _divided(a: Any, b: Any) -> Size | None:
    """Towards zero, which is downwards where nothing is negative."""
    if isinstance(a, int) and isinstance(b, int) and b:
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    if prove_lt(0, b) is not Proof.YES:
        return None
    if prove_le(0, a) is Proof.YES:
        return a // b  # type: ignore[no-any-return]
    # One of the two is 0. Nothing may be wrong where a dim is small: how many windows fit is computed so.
    up: Size = maximum(0, a) // b
    down: Size = maximum(0, 0 - a) // b
    return up - down


def _floored(a: Any, b: Any) -> Size | None:
    return a // b if prove_lt(0, b) is Proof.YES else None


def _remainder(a: Any, b: Any) -> Size | None:
    return a - a // b * b if prove_lt(0, b) is Proof.YES else None


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
    return (values,) if values is not None and _holds_sizes(attrs.dtype) else None


def _holds_sizes(dtype: DType) -> bool:
    return dtype.is_integer and dtype.bits >= 32


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
    if given[0] is None or any(prove_le(0, each) is not Proof.YES for each in given[0].reshape(-1)):
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
    "trunc_mod": _each(lambda a, b: _remainder(a, b) if prove_le(0, a) is Proof.YES else None),
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
