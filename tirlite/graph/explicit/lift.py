"""LiftConst moves the constants of each routine of an executable to its top."""

from __future__ import annotations

from dataclasses import replace

from tirlite.graph.explicit.executable import Executable
from tirlite.graph.explicit.instructions import Body, Branch, Instruction, LoadConstant, Routine, walk
from tirlite.ir import Steps, run
from tirlite.record import record


@record
class LiftConstants:
    """Constants are loaded before all else, in the order in which they stood; those of branches too.

    Behind them begins what runs anew each time, and regions open there.
    """

    name = "lift-constants"

    def __call__(self, executable: Executable) -> Executable:
        return Executable(tuple(each if each.primitive else _lifted(each) for each in executable.routines))


def _lifted(routine: Routine) -> Routine:
    constants = tuple(step for step in walk(routine.body) if isinstance(step, LoadConstant))
    return replace(routine, body=(*constants, *run(_rest(routine.body))))


def _rest(body: Body) -> Steps[Body]:
    kept: list[Instruction] = []
    for step in body:
        if isinstance(step, Branch):
            then, other = (yield _rest(step.then)), (yield _rest(step.other))
            kept.append(Branch(step.condition, then, other))
        elif not isinstance(step, LoadConstant):
            kept.append(step)
    return tuple(kept)
