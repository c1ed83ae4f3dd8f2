"""A program while it is being made: where the next step goes, and what the statements around it have declared.

Its accesses make checked integers of registers of indices and extents.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, TypeAlias

import numpy as np

from tirlite.diag import KernelRunError, Message, Span
from tirlite.interp.memory import Window, owner_of, refuse
from tirlite.interp.program import Block, Marks, Program, Step, Values
from tirlite.ir import Buffer, Function, Steps, Var
from tirlite.ir.faults import IndexOutOfBounds, NegativeExtent
from tirlite.ir.loop_values import Counted, author_name, in_written_order, told_at
from tirlite.record import record


@record(eq=False)
class Site:
    """Where an access stands: its place in the source, and the names and registers of the loops around."""

    span: Span | None
    loops: tuple[tuple[str, int], ...]

    def told(self, values: Values) -> str:
        """What a message says of the loops."""
        return told_at([(name, int(values[register])) for name, register in self.loops])


def element(window: Window, indices: tuple[int, ...], values: Values, marks: Marks, site: Site) -> Any:
    """The flat index of an access in elements of `window`; an array of them if the last index is a vector.

    A vector without lanes touches nothing: then nothing is asked of the other indices.
    """
    if indices and not values[indices[-1]].size:
        return values[indices[-1]].astype(np.int64)
    flat: Any = 0
    for axis, register in enumerate(indices):
        mark = marks[register]
        if mark is not None:
            raise refuse(mark, f"index {axis} of `{window.buffer.name}`", site.span).error()
        index, extent = values[register], window.shape[axis]
        if index.ndim:
            outside = (index < 0) | (index >= extent)
            if outside.any():
                raise _outside(window, axis, int(index[outside][0]), values, site)
            index = index.astype(np.int64)
        else:
            index = int(index)
            if not 0 <= index < extent:
                raise _outside(window, axis, index, values, site)
        flat = flat * extent + index
    return flat


def _outside(window: Window, axis: int, index: int, values: Values, site: Site) -> Exception:
    told, extent = site.told(values), window.shape[axis]
    return IndexOutOfBounds(window.buffer.name, axis, index, extent, told, span=site.span).error()


def position(indices: tuple[int, ...], values: Values) -> tuple[int, ...]:
    """The indices of an access, for messages; of a vector access, those of its first lane."""
    return tuple(int(np.ravel(values[register])[0]) for register in indices)


def extents(
    buffer: Buffer, registers: tuple[int, ...], values: Values, marks: Marks, span: Span | None
) -> tuple[int, ...]:
    """The shape of `buffer`, none of its extents negative."""
    shape = []
    for axis, register in enumerate(registers):
        mark = marks[register]
        if mark is not None:
            raise refuse(mark, f"extent {axis} of `{buffer.name}`", span).error()
        extent = int(values[register])
        if extent < 0:
            raise NegativeExtent(buffer.name, axis, extent, span=span).error()
        shape.append(extent)
    return tuple(shape)


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

    entry: Block
    follower: int
    registers: dict[Var | Buffer, int]


@record(frozen=False, eq=False)
class Code:
    """The program so far. Steps go to the end of `block` and report faults at `span`."""

    program: Program = field(default_factory=Program)
    block: Block = field(init=False)
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

    def goto(self, target: Block) -> None:
        """End this block with a jump to `target`."""
        self.block.goto(target)

    def branch(self, condition: int, use: str, if_true: Block, if_false: Block) -> None:
        """End this block with a choice by the bool in a register."""
        span = self.span

        def choose(values: Values, marks: Marks) -> Block | None:
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

    def cannot(self, what: str) -> KernelRunError:
        error = NotInterpretable(what, span=self.span).error()
        assert isinstance(error, KernelRunError)
        return error
