"""Runs searches beside each other, in their order of preference, with the outcomes that one thread would have had.

All are begun as soon as a thread is free. What comes behind the first that ends is given up and counts for nothing, so
that nobody can tell from the answer how many threads there were.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from queue import SimpleQueue

from tirlite.plan.search.cells import FOUND, IMPOSSIBLE, NODES, RUNNING, STATUS, Cells
from tirlite.plan.search.engine import Engine
from tirlite.plan.search.load import offsets
from tirlite.record import record

Start = Callable[[Cells], None]
# What settles the question that all searches ask.
ENDS = (FOUND, IMPOSSIBLE)


@record
class Outcome:
    """The status after a search, the nodes that it took, and where the buffers lie if it has found that."""

    status: int
    nodes: int
    offsets: list[int] | None = None


@record(frozen=False)
class Race:
    """Searches for one answer: as many at once as there are `cells`. `is_over` is asked whether all must stop."""

    engine: Engine
    cells: Sequence[Cells]
    is_over: Callable[[], bool]
    _last: int = field(default=0, init=False)
    _is_stopped: bool = field(default=False, init=False)

    def run(self, starts: Sequence[Start], nodes: int) -> list[Outcome]:
        """The outcome of each start, after so many nodes at most, up to the first that settles it."""
        free: SimpleQueue[Cells] = SimpleQueue()
        for cells in self.cells:
            free.put(cells)
        self._last = len(starts)

        def search(number: int) -> Outcome:
            cells = free.get()
            try:
                starts[number](cells)
                return self._searched(number, cells, nodes)
            finally:
                free.put(cells)

        outcomes = []
        with ThreadPoolExecutor(len(self.cells)) as pool:
            try:
                for future in [pool.submit(search, number) for number in range(len(starts))]:
                    outcomes.append(future.result())
                    if outcomes[-1].status in ENDS:
                        break
            finally:
                # Also where the user interrupts, as the pool waits for its threads.
                self._is_stopped = True
        return outcomes

    def _searched(self, number: int, cells: Cells, nodes: int) -> Outcome:
        used = 0
        while cells.state[STATUS] == RUNNING and used < nodes and not self._is_idle(number):
            before = int(cells.state[NODES])
            self.engine.advance(cells, min(nodes - used, self.engine.slice))
            used += int(cells.state[NODES]) - before
        status = int(cells.state[STATUS])
        if status in ENDS:
            self._last = min(self._last, number)
        return Outcome(status, used, offsets(cells) if status == FOUND else None)

    def _is_idle(self, number: int) -> bool:
        """Whether nobody waits for the search of this number any more."""
        return self._is_stopped or number > self._last or self.is_over()
