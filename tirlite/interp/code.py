"""A program while it is being made: where the next step goes, and what the statements around it have declared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, TypeAlias

from tirlite.diag import KernelRunError, Message, Span, TirliteError
from tirlite.interp.addressing import Site
from tirlite.interp.memory import owner_of, refuse
from tirlite.interp.program import BasicBlock, Marks, Program, Step, Values
from tirlite.ir import Buffer, Function, Steps, Var
from tirlite.ir.loop_values import Counted, author_name, in_written_order
from tirlite.record import record

# What translates one type of node. An expression's rule returns the register of its value.
Rule: TypeAlias = "Callable[[Code, Any], Steps[Any]]"


class NotInterpretable(Message):
    """The interpreter has no way to run something that compiled code can.

    Example: `kernel.interpret(...)` of a kernel that calls an extern function.
    Fix: Compile and call it instead.
    """

    raises = KernelRunError
    title = "the interpreter cannot run {what}"
    label = "only compiled code can do this"


@record(eq=False)
class Subroutine:
    """Where a function that is called begins, the register that holds the block in which its caller goes on, and those
    of its names: its dims may be the caller's, with other values.
    """

    entry: BasicBlock
    follower: int
    registers: dict[Var | Buffer, int]


@record(frozen=False, eq=False)
class Code:
    """The program so far. Steps go to the end of `block` and report faults at `span`."""

    program: Program = field(default_factory=Program)
    block: BasicBlock = field(init=False)
    span: Span | None = None
    sources: dict[Buffer, Buffer] = field(default_factory=dict)
    thread_loops: int = 0
    loops: tuple[Counted, ...] = ()  # of the function that is translated, around what is
    parallel_loops: list[int] = field(default_factory=list)  # the registers of those that are open
    homes: dict[Buffer, int] = field(default_factory=dict)  # how many were open where a buffer is allocated
    owners: int = 0
    # Of one function there are several: in loops over threads and not, and for each set of parallel loops around it.
    subroutines: dict[tuple[Function, bool, tuple[int, ...]], Subroutine] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.block = self.program.entry

    @property
    def site(self) -> Site:
        """Where an access stands that is translated now."""
        found = in_written_order(self.loops)
        return Site(self.span, tuple((author_name(var), self.program.register_of(var)) for var in found))

    def emit(self, step: Step) -> None:
        self.block.steps.append(step)

    def goto(self, target: BasicBlock) -> None:
        """End this block with a jump to `target`."""
        self.block.goto(target)

    def branch(self, condition: int, use: str, if_true: BasicBlock, if_false: BasicBlock) -> None:
        """End this block with a choice by the bool in a register."""
        span = self.span

        def choose(values: Values, marks: Marks) -> BasicBlock | None:
            mark = marks[condition]
            if mark is not None:
                raise refuse(mark, use, span).error()
            return if_true if values[condition] else if_false

        self.block.exit = choose

    def copy(self, source: int, target: int) -> None:
        """Emit a copy between registers, mark included."""

        def step(values: Values, marks: Marks) -> None:
            values[target] = values[source]
            marks[target] = marks[source]

        self.emit(step)

    def next_owner(self) -> int:
        """The owner of what the next declaration of storage declares."""
        self.owners += 1
        return owner_of(self.owners - 1)

    def root(self, buffer: Buffer) -> Buffer:
        """The allocation or parameter of which `buffer` is a view, through any number of views."""
        while buffer in self.sources:
            buffer = self.sources[buffer]
        return buffer

    def cannot(self, what: str) -> TirliteError:
        return NotInterpretable(what, span=self.span).error()
