"""Makes what sees that two iterations of a parallel loop conflict, for the loop or for an access inside it.

Two iterations conflict on a byte if both touch it and one of them writes it. For each byte of memory from outside of
the loop it is known who wrote it, and two of those who read it, so that a conflict is seen although the iterations run
one after the other.
"""

from __future__ import annotations

from dataclasses import field
from math import gcd
from typing import Any, TypeAlias

import numpy as np

from tirlite.diag import Span
from tirlite.interp.addressing import Locate
from tirlite.interp.code import Code
from tirlite.interp.memory import BufferMemory, divided
from tirlite.interp.program import Marks, Values
from tirlite.ir import Buffer, For
from tirlite.ir.faults import IterationConflict
from tirlite.record import record

# An iteration, by the loop's variable, and the place of its access.
Visit: TypeAlias = "tuple[int, Span | None]"


@record(frozen=False, eq=False)
class Iterations:
    """The iterations of one run of a parallel loop, of which `current` runs.

    `writers` and `readers` go by address, one for each `unit` of bytes, all of which each access so far has touched; of
    several readers two are kept. `held` keeps what was touched, so that no address is given to other memory while the
    loop runs. `read` are the elements that the current one has read, by address and size: to read them again tells
    nothing.
    """

    loop: str
    current: int = 0
    unit: int = 0
    writers: dict[int, Visit] = field(default_factory=dict)
    readers: dict[int, tuple[Visit, ...]] = field(default_factory=dict)
    held: dict[BufferMemory, None] = field(default_factory=dict)
    read: set[tuple[int, int]] = field(default_factory=set)

    def begin(self, current: int) -> None:
        self.current = current
        self.read.clear()

    def touch(self, memory: BufferMemory, flat: Any, *, writes: bool, span: Span | None) -> None:
        """Note an access of the elements at flat indices. Raises KernelRunError for a conflict."""
        self.held[memory] = None
        base, size = memory.address, memory.size
        unit = gcd(self.unit, base, size)
        if unit != self.unit:
            self.writers, self.readers = (divided(each, self.unit, unit) for each in (self.writers, self.readers))
            self.unit = unit
        me: Visit = self.current, span
        for index in flat.tolist() if isinstance(flat, np.ndarray) else (flat,):
            start = base + index * size
            if not writes:
                if (start, size) in self.read:
                    continue
                self.read.add((start, size))
            for part in range(start, start + size, unit):
                writer, readers = self.writers.get(part), self.readers.get(part, ())
                if writer is not None and writer[0] != me[0]:
                    raise self._conflict(memory, index, me, "written" if writes else "read", writer, "written")
                if not writes:
                    if len(readers) < 2 and not any(reader[0] == me[0] for reader in readers):
                        self.readers[part] = (*readers, me)
                    continue
                for reader in readers:
                    if reader[0] != me[0]:
                        raise self._conflict(memory, index, me, "written", reader, "read")
                self.writers[part] = me

    def _conflict(
        self, memory: BufferMemory, flat: int, me: Visit, use: str, other: Visit, other_use: str
    ) -> Exception:
        related = None if other[1] == me[1] else other[1]
        return IterationConflict(
            memory.named(flat), self.loop, use, me[0], other_use, other[0], span=me[1], related=related
        ).error()


def open_iterations(code: Code, loop: For) -> None:
    """Translate the begin of a parallel loop; accesses translated from here on are noted in it."""
    register = code.program.new_register()

    def step(values: Values, _marks: Marks) -> None:
        values[register] = Iterations(loop.var.name)

    code.emit(step)
    code.parallel_loops.append(register)


def begin_iteration(code: Code, loop: For) -> None:
    """Translate the begin of an iteration of the parallel loop that was opened last."""
    register, variable = code.parallel_loops[-1], code.program.register_of(loop.var)

    def step(values: Values, _marks: Marks) -> None:
        values[register].begin(int(values[variable]))

    code.emit(step)


def close_iterations(code: Code) -> None:
    """Translate the end of the parallel loop that was opened last."""
    code.parallel_loops.pop()


def watch_iterations(code: Code, buffer: Buffer, locate: Locate, *, writes: bool) -> Locate:
    """`locate`, which notes the access in each parallel loop around it that the memory comes from outside of."""
    loops = tuple(code.parallel_loops[code.homes.get(code.root(buffer), 0) :])
    if not loops:
        return locate
    span = code.span

    def watched(memory: BufferMemory, values: Values, marks: Marks) -> Any:
        flat = locate(memory, values, marks)
        for loop in loops:
            values[loop].touch(memory, flat, writes=writes, span=span)
        return flat

    return watched
