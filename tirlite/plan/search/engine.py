"""What runs a search, and for how long: the protocol of engines, the engine in Python, nodes and seconds."""

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

# What compiled code takes: nodes in a few milliseconds, and the largest sum of sizes; larger ones could wrap.
SLICE = 1_000
LARGEST = 1 << 60


@record
class Progress:
    """How far a search is: nodes visited, seconds, bytes of the best plan of the memory at hand, and their bound."""

    nodes: int
    seconds: float
    total: int
    bound: int


Listener = Callable[[Progress], None]


@record(frozen=False)
class Limits:
    """`nodes` that are left, seconds after which to stop, who wants to know in between, and how many threads search.

    Where `stop_at_fit` holds, a memory of a given capacity is searched until its plan fits.
    The clock, or the user, may end a search before its nodes do: then `ended_by_clock` holds. `is_timed` holds as well
    where that has ended a part of it, and says that another run may find another plan.
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
        """Whether the clock has ended the search; asks it."""
        if self.time_limit is not None and perf_counter() - self.start >= self.time_limit:
            self.ended_by_clock = self.is_timed = True
        return self.ended_by_clock

    def part(self, count: int) -> Limits:
        """That part of what is left, as limits of their own: see `take_back`."""
        seconds = None if self.time_limit is None else (self.time_limit - (perf_counter() - self.start)) / count
        return Limits(self.nodes // count, seconds, self.listener, self.threads, self.stop_at_fit)

    def take_back(self, part: Limits) -> None:
        """Counts what was used of a part."""
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
    """Runs searches. All engines give the same answers for the same number of nodes.

    `slice` is how many nodes take a few milliseconds, `largest` the largest sum of sizes that it can take;
    `is_parallel` says whether searches in several threads go on at once.
    """

    @property
    def slice(self) -> int: ...

    @property
    def largest(self) -> int: ...

    @property
    def is_parallel(self) -> bool: ...

    def array(self, values: Sequence[int], /) -> Array:
        """The values in the form that `advance` wants."""

    def zeros(self, count: int, /) -> Array:
        """As many zeros in that form."""

    def advance(self, cells: Cells, nodes: int, /) -> None:
        """Goes on for this many nodes, or until `state[STATUS]` tells of an end."""

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
        """Calls it on lists, which Python reads and writes in a fraction of the time that arrays take."""
        for each in fields(cells):
            setattr(cells, each.name, list(getattr(cells, each.name).tolist()))
        procedure(cells, *numbers)
