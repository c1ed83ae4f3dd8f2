"""Engines, which run searches, as a protocol and in Python; and the limits of searches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, fields
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from tirlite.plan.search.cells import Array, Cells
from tirlite.plan.search.rules import advance
from tirlite.record import record

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# Of compiled code: nodes that take a few milliseconds, and the largest sum of sizes, which does not wrap around.
SLICE = 1_000
LARGEST = 1 << 60


@record
class Progress:
    """The progress of a search: nodes, seconds, bytes of the best plan of the current memory, and their lower bound."""

    nodes: int
    seconds: float
    total: int
    bound: int


Listener = Callable[[Progress], None]


@record(frozen=False)
class Limits:
    """The limits of a search, and what is used of them: `nodes` are those that are left.

    `listener` receives progress. With `stop_at_fit`, a memory of a given capacity is searched until its plan fits.
    `ended_by_clock` says that the clock or the user ended the search, `is_timed` that they ended it or a part of it, so
    that another run may find another plan.
    """

    nodes: int
    time_limit: float | None = None
    listener: Listener | None = None
    threads: int = 1
    stop_at_fit: bool = False
    used: int = 0
    ended_by_clock: bool = False
    is_timed: bool = False
    is_interrupted: bool = False
    start: float = field(default_factory=perf_counter)

    @property
    def is_over(self) -> bool:
        return self.ended_by_clock or self.nodes <= 0

    def spend(self, nodes: int) -> None:
        self.nodes -= nodes
        self.used += nodes
        self.is_late()

    def is_late(self) -> bool:
        """Whether the clock has ended the search: reads the clock."""
        if self.time_limit is not None and perf_counter() - self.start >= self.time_limit:
            self.ended_by_clock = self.is_timed = True
        return self.ended_by_clock

    def part(self, count: int) -> Limits:
        """Separate limits with one in `count` parts of what is left: see `take_back`."""
        seconds = None if self.time_limit is None else (self.time_limit - (perf_counter() - self.start)) / count
        return Limits(self.nodes // count, seconds, self.listener, self.threads, self.stop_at_fit)

    def take_back(self, part: Limits) -> None:
        """Subtracts what was used of a part."""
        self.nodes -= part.used
        self.used += part.used
        self.is_timed = self.is_timed or part.is_timed
        self.is_late()
        if part.is_interrupted:
            self.interrupt()

    def interrupt(self) -> None:
        self.ended_by_clock = self.is_timed = self.is_interrupted = True

    def report(self, total: int, bound: int) -> None:
        if self.listener is not None:
            self.listener(Progress(self.used, perf_counter() - self.start, total, bound))


class Engine(Protocol):
    """Runs searches. All engines find the same for the same number of nodes.

    `slice` is a number of nodes that takes a few milliseconds, `largest` the largest sum of sizes; `is_parallel` says
    whether searches in several threads run at once.
    """

    @property
    def slice(self) -> int: ...

    @property
    def largest(self) -> int: ...

    @property
    def is_parallel(self) -> bool: ...

    def array(self, values: Sequence[int], /) -> Array:
        """The values in the form that `advance` takes."""

    def zeros(self, count: int, /) -> Array:
        """As many zeros in that form."""

    def advance(self, cells: Cells, nodes: int, /) -> None:
        """Continues for this many nodes, or until `state[STATUS]` is no longer RUNNING."""

    def run(self, procedure: Callable[..., None], cells: DataclassInstance, /, *numbers: int) -> None:
        """Calls a procedure that is also kernel language on cells, a record of arrays of 64-bit integers."""


class PythonEngine:
    """The rules as they are written, run by Python on lists: some thousand nodes a second, nothing to compile."""

    slice = 20
    largest = 1 << 62
    is_parallel = False

    def array(self, values: Sequence[int], /) -> Array:
        return list(values)

    def zeros(self, count: int, /) -> Array:
        return [0] * count

    def advance(self, cells: Cells, nodes: int, /) -> None:
        advance(cells, nodes)

    def run(self, procedure: Callable[..., None], cells: DataclassInstance, /, *numbers: int) -> None:
        """Calls it on lists, as Python reads and writes these much faster than arrays."""
        for each in fields(cells):
            setattr(cells, each.name, list(getattr(cells, each.name).tolist()))
        procedure(cells, *numbers)
