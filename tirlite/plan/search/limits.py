"""How long a search may go on: nodes and, by request, seconds. Counts both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from time import perf_counter

from tirlite.record import record


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
