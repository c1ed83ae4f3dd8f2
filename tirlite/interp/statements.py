"""Adds the steps and blocks that run a statement at the end of the program so far.

A function that is called is translated once. No function calls itself, so each has one frame of registers for all of
its calls, and where a call goes on is kept in a register of that frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

import numpy as np

from tirlite.analysis import GIVEN, Demand, Extents, demands_of
from tirlite.analysis.param_uses import Use, uses_of
from tirlite.interp.addressing import extents
from tirlite.interp.bfloat import is_bfloat
from tirlite.interp.code import Code, Rule, Subroutine
from tirlite.interp.expressions import accessed, expression, indices_of, only
from tirlite.interp.iterations import begin_iteration, close_iterations, open_iterations
from tirlite.interp.memory import fresh, owner_of, refuse, size_of, view
from tirlite.interp.program import BasicBlock, Marks, Values
from tirlite.interp.threads import close_threads, once_a_block, open_threads, passes_of
from tirlite.ir.assertion import failure, shown
from tirlite.ir.expr import Buffer, Var
from tirlite.ir.faults import CallExtent, OutOfMemory, ViewOutOfBounds
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import KernelCall
from tirlite.ir.loop_values import counted_by
from tirlite.ir.printing import PRINTED, is_print, printed, put, text_and_values
from tirlite.ir.stmt import (
    Allocate,
    Assert,
    AttrStmt,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    Let,
    SeqStmt,
    Stmt,
    Store,
    ThreadRole,
    View,
    While,
    thread_role,
)
from tirlite.ir.trampoline import Steps, in_turn
from tirlite.ir.walk import statements
from tirlite.record import replace

# What most loops count, and how many numbers are made at once for the others.
_SMALL, _AT_ONCE = tuple(np.arange(256)), 64


def enter(code: Code, call: KernelCall) -> Steps[Subroutine | None]:
    """Translate the call up to the callee's body; a Subroutine where that is to be translated now.

    Its end is then told to `leave`.
    """
    program, around = code.program, code.program.registers
    uses = uses_of(call.callee)
    for param, given in call.buffers():
        if uses[param] & Use.WRITE:
            program.written[code.root(given)] = None
    scalars: dict[Var, int] = {}
    for scalar, value in call.scalars():
        scalars[scalar] = yield expression(code, value)
    buffers = {param: program.register_of(given) for param, given in call.buffers()}
    key = (call.callee, code.thread_loops > 0, tuple(code.parallel_loops))
    known = code.subroutines.get(key)
    routine = known or Subroutine(BasicBlock(), program.new_register(), {})
    program.registers = routine.registers
    for scalar, register in scalars.items():
        code.copy(register, program.register_of(scalar))
    _bind(code, buffers, call)
    for demand in demands_of(call, Extents(PrimFunc("anonymous", (), SeqStmt()))):
        yield _check(code, demand, call)
    program.registers = around
    after = BasicBlock()

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
    memories = [(register, code.program.register_of(param), param) for param, register in sources.items()]
    dims = [(sources[told.param], told, code.program.register_of(dim)) for dim, told in call.callee.sources.items()]

    def step(values: Values, _marks: Marks) -> None:
        for source, target, param in memories:
            values[target] = replace(values[source], buffer=param)
        for source, told, target in dims:
            values[target] = np.int64((values[source].shape[told.axis] - told.plus) // told.times)

    code.emit(step)


def _check(code: Code, demand: Demand, call: KernelCall) -> Steps[None]:
    """Emit the check of an extent, in registers of the callee."""
    memory, given = code.program.register_of(demand.param), code.program.register_of(GIVEN)
    span, problem = code.span, demand.told(call.callee.name)

    def extent(values: Values, _marks: Marks) -> None:
        values[given] = np.int64(values[memory].shape[demand.axis])

    code.emit(extent)
    condition = yield expression(code, demand.condition)
    held, failed = BasicBlock(), BasicBlock()
    code.branch(condition, f"a scalar that `{call.callee.name}` takes for an extent", held, failed)

    def fail(_values: Values, _marks: Marks) -> None:
        raise CallExtent(problem, span=span).error()

    failed.steps.append(fail)
    code.block = held


def statement(code: Code, node: Stmt) -> Steps[None]:
    """Translate `node` to the end of `code`."""
    if node.span is not None:
        code.span = node.span
    return RULES[type(node)](code, node)


def _seq(code: Code, node: SeqStmt) -> Steps[None]:
    for stmt in node.stmts:
        yield statement(code, stmt)


def _store(code: Code, node: Store) -> Steps[None]:
    indices, on = yield indices_of(code, node)
    stored = yield expression(code, node.value)
    target, dtype, span = code.program.register_of(node.buffer), node.buffer.dtype, code.span
    if on is not None:
        if dtype.lanes > 1:
            raise code.cannot("a masked access of vector elements")
        stored = only(code, stored, on, node.buffer.name)
    use = f"the value stored into `{node.buffer.name}`"
    locate = accessed(code, node.buffer, indices, writes=True)
    is_plain = node.value.dtype.lanes == 1 and not is_bfloat(dtype)

    def step(values: Values, marks: Marks) -> None:
        memory, mark = values[target], marks[stored]
        flat = locate(memory, values, marks)
        if mark is not None:
            if memory.shadow is None:
                raise refuse(mark, use, span).error()
            memory.store(flat, values[stored], mark)
        elif is_plain:
            memory.data[flat] = values[stored]
            if memory.shadow is not None:
                memory.shadow[flat] = memory.owner
        else:
            memory.store(flat, values[stored], None)

    code.emit(step)
    code.program.written[code.root(node.buffer)] = None


def _evaluate(code: Code, node: Evaluate) -> Steps[None]:
    if is_print(node):
        yield _print(code, node)
    else:
        yield expression(code, node.value)


def _print(code: Code, node: Evaluate) -> Steps[None]:
    text, shown = text_and_values(node)
    types, span = [each.dtype for each in shown], code.span
    registers = yield in_turn(expression(code, value) for value in shown)

    def step(values: Values, marks: Marks) -> None:
        for each in registers:
            if (mark := marks[each]) is not None:
                raise refuse(mark, PRINTED, span).error()
        put(printed(text, [values[each].item() for each in registers], types))

    code.emit(step)


def shape_of(code: Code, buffer: Buffer) -> Steps[tuple[int, ...]]:
    """Translate the extents of `buffer`: their registers."""
    if buffer.dtype.is_handle:
        raise code.cannot(f"a buffer of type {buffer.dtype}")
    return tuple((yield in_turn(expression(code, extent) for extent in buffer.shape)))


def _allocate(code: Code, node: Allocate) -> Steps[None]:
    buffer, span = node.buffer, code.span
    registers = yield shape_of(code, buffer)
    target, owner = code.program.register_of(buffer), code.next_owner()
    code.homes[buffer] = len(code.parallel_loops)

    def step(values: Values, marks: Marks) -> None:
        shape = extents(buffer, registers, values, marks, span)
        try:
            values[target] = fresh(buffer, shape, owner)
        except MemoryError:
            raise OutOfMemory(size_of(buffer, shape), buffer.name, span=span).error() from None

    code.emit(once_a_block(code, buffer, step, passes_of(code, buffer)))


def _view(code: Code, node: View) -> Steps[None]:
    buffer, span, site = node.buffer, code.span, code.site
    registers = yield shape_of(code, buffer)
    offset = yield expression(code, node.byte_offset)
    source, target = code.program.register_of(node.source), code.program.register_of(buffer)
    code.sources[buffer] = node.source
    owner = code.next_owner() if node.fresh else None
    passes = passes_of(code, buffer) if node.fresh else None

    def step(values: Values, marks: Marks) -> None:
        shape = extents(buffer, registers, values, marks, span)
        mark, whole, first = marks[offset], values[source], int(values[offset])
        if mark is not None:
            raise refuse(mark, f"the byte offset of `{buffer.name}`", span).error()
        last = first + size_of(buffer, shape)
        if not 0 <= first <= last <= whole.raw.size:
            told = site.told(values)
            raise ViewOutOfBounds(buffer.name, node.source.name, first, last, whole.raw.size, told, span=span).error()
        # A slow thread may still read what was written before the declaration was passed once more.
        mine = owner if owner is None or passes is None else owner_of(owner - 1 + values[passes] * code.owners)
        values[target] = view(buffer, shape, whole, first, mine)

    code.emit(once_a_block(code, buffer, step, passes))


def _let(code: Code, node: Let) -> Steps[None]:
    value = yield expression(code, node.value)
    code.copy(value, code.program.register_of(node.var))


def _assert(code: Code, node: Assert) -> Steps[None]:
    condition = yield expression(code, node.condition)
    held, failed = BasicBlock(), BasicBlock()
    code.branch(condition, "the condition of an assert", held, failed)
    code.block = failed
    registers = yield in_turn(expression(code, value) for value in shown(node).values)

    def step(values: Values, marks: Marks) -> None:
        found = [values[each].item() if marks[each] is None else None for each in registers]
        raise failure(node, found).error()

    code.emit(step)
    code.block = held


def _for(code: Code, node: For) -> Steps[None]:
    if thread_role(node) in (ThreadRole.THREAD, ThreadRole.VIRTUAL):
        yield _threads(code, node)
        return
    bounds = ((yield expression(code, node.start)), (yield expression(code, node.stop)))
    counter, variable = code.program.new_register(), code.program.register_of(node.var)
    span, use = code.span, f"a bound of the loop over `{node.var.name}`"
    body, after = BasicBlock(), BasicBlock()

    def begin(values: Values, marks: Marks) -> None:
        for bound in bounds:
            mark = marks[bound]
            if mark is not None:
                raise refuse(mark, use, span).error()
        values[counter] = _counted(int(values[bounds[0]]), int(values[bounds[1]]), node.step)

    def advance(values: Values, _marks: Marks) -> BasicBlock | None:
        value = next(values[counter], None)
        if value is None:
            return after
        values[variable] = value
        return body

    code.emit(begin)
    # Planned storage of a vectorized loop that has stayed a loop is used by its iterations in turn.
    by_lanes = node.kind is ForKind.VECTORIZED and not any(isinstance(each, View) for each in statements(node.body))
    is_parallel = by_lanes or node.kind is ForKind.PARALLEL or thread_role(node) is ThreadRole.BLOCK
    if is_parallel:
        open_iterations(code, node)
    code.block.exit = advance
    code.block = body
    if is_parallel:
        begin_iteration(code, node)
    yield _iteration(code, node)
    if is_parallel:
        close_iterations(code)
    code.block.exit = advance
    code.block = after


def _counted(start: int, stop: int, step: int) -> Iterator[np.int64]:
    """The numbers that a loop counts."""
    is_short = 0 <= start < len(_SMALL) and 0 <= stop <= len(_SMALL)
    return iter(_SMALL[start:stop:step]) if is_short else _many(start, stop, step)


def _many(start: int, stop: int, step: int) -> Iterator[np.int64]:
    """Numbers that are made by many at a time: it takes a tenth of making each."""
    numbers = iter(range(start, stop, step))
    while some := tuple(islice(numbers, _AT_ONCE)):
        yield from np.array(some, np.int64)


def _iteration(code: Code, loop: For | While) -> Steps[None]:
    around = code.loops
    code.loops = (*around, *counted_by(loop))
    yield statement(code, loop.body)
    code.loops = around


def _threads(code: Code, node: For) -> Steps[None]:
    extent = yield expression(code, node.stop)
    fork = open_threads(code, node, extent)
    yield _iteration(code, node)
    close_threads(code, fork)


def _while(code: Code, node: While) -> Steps[None]:
    head, body, after = BasicBlock(), BasicBlock(), BasicBlock()
    code.goto(head)
    code.block = head
    condition = yield expression(code, node.condition)
    code.branch(condition, "the condition of a `while`", body, after)
    code.block = body
    yield _iteration(code, node)
    code.goto(head)
    code.block = after


def _if(code: Code, node: IfThenElse) -> Steps[None]:
    sides, after = (BasicBlock(), BasicBlock()), BasicBlock()
    condition = yield expression(code, node.condition)
    code.branch(condition, "the condition of an `if`", *sides)
    for side, body in zip(sides, (node.then_body, node.else_body), strict=True):
        code.block = side
        yield statement(code, body)
        code.goto(after)
    code.block = after


def _kernel_call(code: Code, node: KernelCall) -> Steps[None]:
    routine = yield enter(code, node)
    if routine is not None:
        program, around = code.program, (code.block, code.span, code.program.registers, code.loops)
        code.block, program.registers, code.loops = routine.entry, routine.registers, ()
        yield statement(code, node.callee.body)
        leave(code, routine)
        code.block, code.span, program.registers, code.loops = around


def _attr(code: Code, node: AttrStmt) -> Steps[None]:
    # What attributes say is about where and how fast, never about what is computed.
    yield statement(code, node.body)


RULES: dict[type[Stmt], Rule] = {
    SeqStmt: _seq,
    Store: _store,
    Evaluate: _evaluate,
    Allocate: _allocate,
    View: _view,
    Let: _let,
    Assert: _assert,
    For: _for,
    While: _while,
    IfThenElse: _if,
    AttrStmt: _attr,
    KernelCall: _kernel_call,
}
