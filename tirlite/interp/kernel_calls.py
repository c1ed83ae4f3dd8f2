"""Makes the steps that enter the function that a KernelCall calls, and once the function's program.

No function calls itself, so each has one frame of registers for all of its calls. Where a call goes on is kept in a
register of that frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tirlite.analysis import GIVEN, Demand, Extents, ParamUses, Use, demands_of
from tirlite.interp.code import Code, Subroutine
from tirlite.interp.expressions import expression
from tirlite.interp.program import Block, Marks, Values
from tirlite.ir import Buffer, KernelCall, PrimFunc, SeqStmt, Steps, Var
from tirlite.ir.faults import CallExtent


def enter(code: Code, call: KernelCall) -> Steps[Subroutine | None]:
    """Translate the call up to the callee's body; a Subroutine where that is to be translated now.

    Its end is then told to `leave`.
    """
    program, around = code.program, code.program.registers
    uses = ParamUses().of(call.callee)
    for param, given in call.buffers():
        if uses[param] & Use.WRITE:
            program.written[code.root(given)] = None
    scalars: dict[Var, int] = {}
    for scalar, value in call.scalars():
        scalars[scalar] = yield expression(code, value)
    buffers = {param: program.register_of(given) for param, given in call.buffers()}
    key = (call.callee, code.thread_loops > 0, tuple(code.parallel_loops))
    known = code.subroutines.get(key)
    routine = known or Subroutine(Block(), program.new_register(), {})
    program.registers = routine.registers
    for scalar, register in scalars.items():
        code.copy(register, program.register_of(scalar))
    _bind(code, buffers, call)
    for demand in demands_of(call, Extents(PrimFunc("nobody", (), SeqStmt()))):
        yield _check(code, demand, call)
    program.registers = around
    after = Block()

    def jump(values: Values, _marks: Marks) -> None:
        values[routine.follower] = after

    code.emit(jump)
    code.goto(routine.entry)
    code.block = after
    code.subroutines[key] = routine
    return routine if known is None else None


def leave(code: Code, routine: Subroutine) -> None:
    """End the body of a function: its caller goes on."""
    code.block.exit = lambda values, _marks: values[routine.follower]


def _bind(code: Code, sources: Mapping[Buffer, int], call: KernelCall) -> None:
    """Emit what lays the parameters on the arguments' memory and takes the dims from their shapes."""
    windows = [(register, code.program.register_of(param), param) for param, register in sources.items()]
    dims = [(sources[param], axis, code.program.register_of(dim)) for dim, (param, axis) in call.callee.sources.items()]

    def step(values: Values, _marks: Marks) -> None:
        for source, target, param in windows:
            values[target] = replace(values[source], buffer=param)
        for source, axis, target in dims:
            values[target] = np.int64(values[source].shape[axis])

    code.emit(step)


def _check(code: Code, demand: Demand, call: KernelCall) -> Steps[None]:
    """Emit the check of an extent, in registers of the callee."""
    window, given = code.program.register_of(demand.param), code.program.register_of(GIVEN)
    span, problem = code.span, demand.told(call.callee.name)

    def extent(values: Values, _marks: Marks) -> None:
        values[given] = np.int64(values[window].shape[demand.axis])

    code.emit(extent)
    condition = yield expression(code, demand.condition)
    held, failed = Block(), Block()
    code.branch(condition, f"a scalar that `{call.callee.name}` takes for an extent", held, failed)

    def fail(_values: Values, _marks: Marks) -> None:
        raise CallExtent(problem, span=span).error()

    failed.steps.append(fail)
    code.block = held
