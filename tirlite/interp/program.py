"""The form in which a function runs: basic blocks of small steps over numbered registers.

A register holds a value (a NumPy scalar, or an array of the lanes of a vector), the memory of a buffer, or the iterator
of a running loop. Beside each stands its poison mark. Nothing nests, so that no depth of a program can exhaust a stack.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar, TypeAlias

from tirlite.diag import Span
from tirlite.interp.memory import Poison
from tirlite.ir import Buffer, Var
from tirlite.record import record

Values: TypeAlias = list[Any]
Marks: TypeAlias = list[Poison | None]
Step: TypeAlias = Callable[[Values, Marks], None]
Exit: TypeAlias = "Callable[[Values, Marks], BasicBlock | None]"


def finish(_values: Values, _marks: Marks) -> BasicBlock | None:
    """The exit of the last block."""
    return None


@record(frozen=False, eq=False)
class BasicBlock:
    """Steps that run in order, and what chooses the next block."""

    steps: list[Step] = field(default_factory=list)
    exit: Exit = finish
    pauses: ClassVar[bool] = False

    def goto(self, target: BasicBlock) -> None:
        self.exit = lambda _values, _marks: target


@record(frozen=False, eq=False)
class Fork(BasicBlock):
    """Where a thread waits for as many threads as register `extent` says, which run `body` with `variable` counted.

    `is_virtual` tells virtual threads from others. The thread goes on at `after` when all of them have ended.
    """

    pauses = True
    extent: int = 0
    variable: int = 0
    is_virtual: bool = False
    body: BasicBlock = field(default_factory=BasicBlock)
    after: BasicBlock = field(default_factory=BasicBlock)
    span: Span | None = None


@record(frozen=False, eq=False)
class Meeting(BasicBlock):
    """Where each thread of a block waits for all others, and then goes on at `after`."""

    pauses = True
    after: BasicBlock = field(default_factory=BasicBlock)
    span: Span | None = None


@record(frozen=False, eq=False)
class Program:
    """A translated function. `values` are the registers at the start: constants are in place, the rest is None.

    `registers` is where the parameters, dims and buffers go. `written` are the parameters that some store goes to.
    Register 0 holds the thread that runs. `counters` are the registers in which a thread counts how often it has passed
    the declarations of what its block shares.
    """

    entry: BasicBlock = field(default_factory=BasicBlock)
    values: Values = field(default_factory=lambda: [None])
    registers: dict[Var | Buffer, int] = field(default_factory=dict)
    written: dict[Buffer, None] = field(default_factory=dict)
    counters: list[int] = field(default_factory=list)

    def new_register(self, value: object = None) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def register_of(self, name: Var | Buffer) -> int:
        if name not in self.registers:
            self.registers[name] = self.new_register()
        return self.registers[name]


# The register of the thread that runs.
THREAD = 0


def advance(block: BasicBlock | None, values: Values, marks: Marks) -> Fork | Meeting | None:
    """Run from `block` on to where threads fork or meet, or to the end."""
    while block is not None:
        for step in block.steps:
            step(values, marks)
        if block.pauses:
            assert isinstance(block, Fork | Meeting)
            return block
        block = block.exit(values, marks)
    return None
