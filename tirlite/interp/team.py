"""Runs the threads of one block to their end: one after the other, from barrier to barrier.

Two threads conflict on a byte if one writes it and no barrier stands between their accesses. For each byte that is
touched since the last barrier it is known who wrote it last and who read it, so that a conflict is seen whatever the
order in which the threads run.
"""

from __future__ import annotations

from dataclasses import field
from math import gcd
from typing import Any, TypeAlias

import numpy as np

from tirlite.diag import KernelRunError, Message, Span
from tirlite.interp.memory import BufferMemory, divided
from tirlite.interp.program import THREAD, BasicBlock, Fork, Marks, Meeting, Program, Values, advance
from tirlite.record import record

# The way to a thread from the first: for each fork on it, which fork of its thread it is, and which of its threads is
# taken. The last number is -1 for several of them.
Path: TypeAlias = tuple[tuple[int, int], ...]


class ThreadConflict(Message):
    """Two threads of a block touch one element, one of them writes it, and no barrier stands in between.

    Example: `s[t] = x[t]` and then `y[t] = s[t // 2]` for each thread `t`.
    """

    raises = KernelRunError
    title = "thread {thread} and thread {other} conflict on {element}"
    label = "touched here, and by the other thread since the last barrier; one of them writes"
    help = 'put `tl.barrier("shared")` between the two, or give each thread elements of its own'


class BarrierMissed(Message):
    """Some threads of a block wait at a barrier that others do not reach.

    Example: `tl.barrier("shared")` under `if t < 16:` among 32 threads.
    Fix: Move the barrier out of what not all threads do.
    """

    raises = KernelRunError
    title = "thread {thread} waits at a barrier, and thread {other} {instead}"
    label = "not all threads of the block come here"
    related_label = "the other thread waits here"
    help = "let all threads of a block reach the same barriers, in the same order"


@record(frozen=False, eq=False)
class Thread:
    """A thread: its registers, where it goes on, and the threads that it waits for.

    `finished` is one of these that has ended.
    """

    team: Team
    path: Path
    names: tuple[str, ...]
    values: Values
    marks: Marks
    block: BasicBlock | None
    parent: Thread | None = None
    virtual: Path = ()
    forks: int = 0
    waits_for: int = 0
    finished: Thread | None = None
    meeting: Meeting | None = None

    def __str__(self) -> str:
        return "(" + ", ".join(self.names) + ")"


def execute(program: Program, values: Values) -> None:
    """Run `program` to its end on registers that hold the arguments."""
    marks: Marks = [None] * len(values)
    pause = advance(program.entry, values, marks)
    while pause is not None:
        assert isinstance(pause, Fork)
        Team(program).run(pause, values, marks)
        pause = advance(pause.after, values, marks)


@record(frozen=False, eq=False)
class Team:
    """The threads of one block while they run.

    `writers` and `readers` say who touched what since the last barrier, by address, one for each `unit` of bytes, all
    of which each access so far has touched; `held` keeps what was touched, so that no address is given to another
    buffer meanwhile. `shared` is the memory of the block, by the declaration and how often it was passed.
    """

    program: Program
    unit: int = 0
    writers: dict[int, Path] = field(default_factory=dict)
    readers: dict[int, Path] = field(default_factory=dict)
    held: set[BufferMemory] = field(default_factory=set)
    shared: dict[tuple[int, int, Path], BufferMemory] = field(default_factory=dict)

    def run(self, fork: Fork, values: Values, marks: Marks) -> None:
        first = Thread(self, (), (), values, marks, fork.after)
        runnable = self._forked(first, fork)
        while runnable:
            waiting = self._until_all_wait(runnable, first)
            if waiting:
                _demand_all(waiting)
            for thread in waiting:
                assert thread.meeting is not None
                thread.block, thread.meeting = thread.meeting.after, None
            self._forget()
            runnable = waiting

    def _until_all_wait(self, runnable: list[Thread], first: Thread) -> list[Thread]:
        """Run all to the next barrier or to their end: those that wait at a barrier, in order."""
        stack, waiting = runnable[::-1], []
        while stack:
            thread = stack.pop()
            thread.values[THREAD] = thread
            pause = advance(thread.block, thread.values, thread.marks)
            if isinstance(pause, Meeting):
                thread.meeting = pause
                waiting.append(thread)
                continue
            if isinstance(pause, Fork):
                thread.block = pause.after
                children = self._forked(thread, pause)
                stack += children[::-1] or [thread]
                continue
            parent = thread.parent
            assert parent is not None
            parent.waits_for -= 1
            parent.finished = thread
            if not parent.waits_for:
                parent.finished = None
                for counter in self.program.counters:
                    parent.values[counter] = thread.values[counter]
                if parent is not first:
                    stack.append(parent)
        return waiting

    def _forked(self, parent: Thread, fork: Fork) -> list[Thread]:
        """The threads that `parent` waits for now, in order."""
        extent, threads = int(parent.values[fork.extent]), []
        for number in range(extent):
            step = (parent.forks, number)
            values = list(parent.values)
            values[fork.variable] = np.int64(number)
            names = (*parent.names, str(number))
            virtual = (*parent.virtual, step) if fork.is_virtual else parent.virtual
            path = (*parent.path, step)
            threads.append(Thread(self, path, names, values, list(parent.marks), fork.body, parent, virtual))
        parent.forks += 1
        parent.waits_for = len(threads)
        return threads

    def _forget(self) -> None:
        for table in (self.writers, self.readers, self.held):
            table.clear()

    def touch(self, thread: Thread, memory: BufferMemory, flat: Any, *, writes: bool, span: Span | None) -> None:
        """Note an access of the elements at flat indices. Raises KernelRunError for a conflict."""
        self.held.add(memory)
        base, size = memory.address, memory.size
        unit = gcd(self.unit, base, size)
        if unit != self.unit:
            self.writers, self.readers = (divided(each, self.unit, unit) for each in (self.writers, self.readers))
            self.unit = unit
        path, writers, readers = thread.path, self.writers, self.readers
        for index in flat.tolist() if isinstance(flat, np.ndarray) else (flat,):
            start = base + index * size
            for part in range(start, start + size, unit):
                other = writers.get(part, path)
                if other is not path and not ordered(other, path):
                    self._conflict(thread, other, memory, index, span)
                if writes:
                    other = readers.get(part, path)
                    if other is not path and not ordered(other, path):
                        self._conflict(thread, other, memory, index, span)
                    writers[part] = path
                else:
                    other = readers.get(part, path)
                    readers[part] = path if ordered(other, path) else joined(other, path)

    def _conflict(self, thread: Thread, other: Path, memory: BufferMemory, flat: int, span: Span | None) -> None:
        text = "others" if other[-1][1] < 0 else "(" + ", ".join(str(number) for _, number in other) + ")"
        raise ThreadConflict(str(thread), text, memory.named(flat), span=span).error()


def ordered(earlier: Path, later: Path) -> bool:
    """Whether what the one did is done when the other goes on: its thread waits for it, or has waited for it."""
    for one, other in zip(earlier, later, strict=False):
        if one != other:
            return one[0] != other[0]
    return True


def joined(one: Path, other: Path) -> Path:
    """Both of two threads of one fork."""
    for depth, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return (*one[:depth], (a[0], -1))
    return one


def _demand_all(waiting: list[Thread]) -> None:
    """All threads of the block wait, and at one barrier."""
    here = waiting[0].meeting
    assert here is not None
    for thread in waiting:
        if thread.meeting is not here:
            assert thread.meeting is not None
            raise BarrierMissed(
                str(waiting[0]), str(thread), "waits at another one", span=here.span, related=thread.meeting.span
            ).error()
        parent = thread.parent
        while parent is not None:
            if parent.finished is not None:
                raise BarrierMissed(str(thread), str(parent.finished), "has ended", span=here.span).error()
            parent = parent.parent
