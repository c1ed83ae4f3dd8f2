"""Tells what the function of a group does with each value, from its calls."""

from __future__ import annotations

from tirlite.graph.expr import Expr
from tirlite.graph.fuse.elements import elements_of
from tirlite.graph.fuse.finish import Operand, Step
from tirlite.graph.fuse.groups import Group
from tirlite.graph.program import Program
from tirlite.record import record

_COMMUTE = ("add", "multiply")


@record(eq=False)
class Steps:
    """The steps behind the first call, the operands that they take from outside, and what is equal for equal ones."""

    steps: tuple[Step, ...]
    operands: tuple[Operand, ...]
    outside: list[Expr]
    key: tuple[object, ...]


def steps_of(group: Group, made: Program) -> Steps:
    """The steps of a group. Each operand from outside is taken once for all steps that have it under the same axes."""
    values: dict[Expr, int] = {call: number for number, call in enumerate(group.calls)}
    places: dict[tuple[object, ...], int] = {}
    operands: list[Operand] = []
    outside: list[Expr] = []
    steps: list[Step] = []
    for call in group.calls[1:]:
        of = elements_of(call)
        assert of is not None
        given: list[int] = []
        for arg, axes in zip(call.args, of.axes, strict=True):
            (part,) = made.parts[arg]
            if part.step in values:
                given.append(values[part.step])
                continue
            if (part, axes) not in places:
                places[part, axes] = len(operands)
                operands.append(Operand(arg.dtype, axes))
                outside.append(arg)
            given.append(~places[part, axes])
        if call.op.name in _COMMUTE:
            given.sort(reverse=True)  # so that a sum with what comes from outside is one, on whichever side that stands
        steps.append(Step(of.formula, call.dtype, tuple(given)))
    told = zip(group.calls[1:], steps, strict=True)
    key = (
        tuple((call.op.name, call.attrs.bits, step.dtype, step.values) for call, step in told),
        tuple((each.dtype, each.axes) for each in operands),
    )
    return Steps(tuple(steps), tuple(operands), outside, key)
