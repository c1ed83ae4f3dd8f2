"""Finds the operands of a call whose place its result may take, if nobody needs them any more."""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.graph.expr import Call, Expr
from tirlite.graph.extents import is_equal
from tirlite.graph.memory.values import Value, Values
from tirlite.graph.op import Op
from tirlite.graph.types import TensorType


def lenders(call: Call, values: Values) -> Iterator[Value]:
    """The tensors that the call reads just where it writes: never by another shape, or spread, or twice otherwise."""
    if isinstance(call.op, Op) and (call.op.is_elementwise or call.op.overwrites):
        candidates = call.args if call.op.is_elementwise else call.args[:1]
        for value in dict.fromkeys(value for arg in candidates for value in values.of[arg]):
            reads = [arg for arg in call.args if value in values.of[arg]]
            if all(arg in candidates and _is_alike(arg, call) for arg in reads):
                yield value


def _is_alike(arg: Expr, call: Call) -> bool:
    a, b = arg.type, call.type
    if not isinstance(a, TensorType) or not isinstance(b, TensorType):
        return False
    alike = a.dtype.bytes == b.dtype.bytes and a.rank == b.rank
    return alike and all(map(is_equal, a.shape, b.shape))
