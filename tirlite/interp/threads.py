"""Makes what runs a thread-bound loop, a barrier, or an access inside such a loop."""

from __future__ import annotations

from typing import Any

from tirlite.interp.addressing import Locate
from tirlite.interp.code import Code
from tirlite.interp.memory import BufferMemory, refuse
from tirlite.interp.program import THREAD, Fork, Marks, Meeting, Step, Values
from tirlite.ir import Buffer, For
from tirlite.ir.stmt import ThreadRole, thread_role
from tirlite.plan import Rank, StorageScope


def open_threads(code: Code, node: For, extent: int) -> Fork:
    """Translate the begin of a loop over threads; what follows is run by each of them."""
    role, span = thread_role(node), code.span
    use = f"a bound of the loop over `{node.var.name}`"

    def check(_values: Values, marks: Marks) -> None:
        mark = marks[extent]
        if mark is not None:
            raise refuse(mark, use, span).error()

    code.emit(check)
    fork = Fork(
        extent=extent,
        variable=code.program.register_of(node.var),
        is_virtual=role is ThreadRole.VIRTUAL,
        span=span,
    )
    code.goto(fork)
    code.block = fork.body
    code.thread_loops += 1
    return fork


def close_threads(code: Code, fork: Fork) -> None:
    """Translate the end of a loop over threads."""
    code.thread_loops -= 1
    code.block = fork.after


def barrier(code: Code) -> int:
    """Translate a barrier, at which a thread that runs alone does not wait: the register of its result."""
    if code.thread_loops:
        meeting = Meeting(span=code.span)
        code.goto(meeting)
        code.block = meeting.after
    return code.program.new_register()


def watch(code: Code, locate: Locate, *, writes: bool) -> Locate:
    """`locate`, which sees whether an access inside a loop over threads conflicts with that of another thread."""
    if not code.thread_loops:
        return locate
    span = code.span

    def watched(memory: BufferMemory, values: Values, marks: Marks) -> Any:
        flat, thread = locate(memory, values, marks), values[THREAD]
        thread.team.touch(thread, memory, flat, writes=writes, span=span)
        return flat

    return watched


def passes_of(code: Code, buffer: Buffer) -> int | None:
    """For what threads declare to be shared by all of them, a register in which each counts the declarations passed."""
    if not code.thread_loops or StorageScope.parse(buffer.scope).rank is not Rank.SHARED:
        return None
    counter = code.program.new_register(0)
    code.program.counters.append(counter)
    return counter


def once_a_block(code: Code, buffer: Buffer, declare: Step, passes: int | None) -> Step:
    """`declare`, which makes the memory of `buffer`; for what threads share, only the first of them does so.

    Threads that have passed a declaration equally often mean the same memory.
    """
    if passes is None:
        return declare
    register, counter = code.program.register_of(buffer), passes

    def step(values: Values, marks: Marks) -> None:
        thread, values[counter] = values[THREAD], values[counter] + 1
        key = (counter, values[counter], thread.virtual)
        if key not in thread.team.shared:
            declare(values, marks)
            thread.team.shared[key] = values[register]
        values[register] = thread.team.shared[key]

    return step
