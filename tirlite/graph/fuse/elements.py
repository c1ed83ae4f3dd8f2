"""Says of a call what it makes of one element of each operand, where it is an operator that goes by elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import TypeAlias

from tirlite.graph.expr import Call
from tirlite.graph.extents import is_equal
from tirlite.graph.op import Op
from tirlite.graph.types import TensorType
from tirlite.ir import Expr
from tirlite.record import record

Formula: TypeAlias = Callable[..., Expr]


@record(eq=False)
class Elements:
    """A formula of elements, and for each operand which axis of the result each of its axes is: None for one of 1."""

    formula: Formula
    axes: tuple[tuple[int | None, ...], ...]


def elements_of(call: Call) -> Elements | None:
    """What a call makes of elements; None where it does not go by them, or too little is known of its extents."""
    if not isinstance(call.op, Op) or call.is_view or not isinstance(call.type, TensorType):
        return None
    lowering = call.op.lowering
    if lowering is None or lowering.formula is None or call.attrs.symbolic_sizes():
        return None
    aligned = lowering.aligned
    first = getattr(call.attrs, aligned) if isinstance(aligned, str) else aligned
    axes = tuple(_axes(arg.tensor, call.type, first) for arg in call.args)
    found = tuple(each for each in axes if each is not None)
    if len(found) < len(axes):
        return None
    attrs = {e.name: getattr(call.attrs, e.name) for e in fields(call.attrs) if e.name not in lowering.said}
    return Elements(partial(lowering.formula, **attrs), found)


def _axes(of: TensorType, result: TensorType, aligned: int | None) -> tuple[int | None, ...] | None:
    """The axes of the result that an operand has: the last ones, or from `aligned` on, for one of fewer axes."""
    first = result.rank - of.rank if aligned is None or of.rank == result.rank else aligned % result.rank
    made: list[int | None] = []
    for number, extent in enumerate(of.shape, first):
        if extent == 1:
            made.append(None)
        elif is_equal(extent, result.shape[number]):
            made.append(number)
        else:
            return None
    return tuple(made)
