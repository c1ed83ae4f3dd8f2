"""Counts the nodes, bytes and seconds of a model's import, and refuses models beyond the budget."""

from __future__ import annotations

from pathlib import Path
from time import monotonic, thread_time
from typing import Any

from tirlite.diag import GraphMessage, Span
from tirlite.graph.known.import_options import FileUsed, state_of
from tirlite.record import record


@record
class Budget:
    """The most that one import may take.

    `nodes` are those once functions are called, loops unrolled and branches read, `depth` is how deep these may stand
    in one another. `bytes` are those of constants that are read or computed; a model that has tensors itself may have
    `times` as many as these. What an operator computes of constants is a constant up to `folded` bytes, and is left to
    the run beyond. `seconds` are CPU time of the thread: no other limit depends on the machine.
    """

    nodes: int = 100_000
    depth: int = 48
    bytes: int = 1 << 32
    times: int = 8
    folded: int = 1 << 29
    seconds: float = 600.0


class OnnxTooLarge(GraphMessage):
    """A model of a few lines takes far more to read than its file says.

    Functions are called, loops unrolled and branches read, and what is known before a run is computed. There is a limit
    to the nodes and to their depth, to the bytes of constants (4 GiB, or 8 times what the model has), and to the time.

    Example: Functions that call one another twice, 32 deep; a function that calls itself; a loop around `Tile`.
    Fix: Export the model with loops that stay loops, or cut it into parts.
    """

    title = "`{model}` has more than {most} {what}, with its functions called and its loops unrolled"
    label = "reached here"


class Spent:
    """The part of the budget that the import of one model has used. Each method raises GraphError beyond the budget."""

    def __init__(self, model: str, budget: Budget) -> None:
        self.model = model
        self.budget = budget
        self._started, self._began = monotonic(), thread_time()
        self._stored: dict[Path | None, int] = {}
        self._files: dict[Path, FileUsed] = {}
        self.again()

    def again(self) -> None:
        """Starts to read the model once more, by the same clock."""
        self._nodes = self._bytes = 0

    def store(self, of: Path | None, size: int) -> None:
        """Counts bytes in the model itself, or in a file of its data."""
        self._stored[of] = size

    def use(self, path: Path) -> None:
        """Records a file of data before it is read."""
        state = state_of(path)
        self._files.setdefault(path, FileUsed(path, state))
        self.store(path, state[0])

    @property
    def files(self) -> list[FileUsed]:
        """The files of data that were read."""
        return list(self._files.values())

    def node(self, depth: int, span: Span | None) -> None:
        """Counts a node at a depth of nested functions and graphs."""
        self._nodes += 1
        self._demand(self._nodes <= self.budget.nodes, self.budget.nodes, "nodes", span)
        self._demand(depth <= self.budget.depth, self.budget.depth, "functions and graphs in one another", span)
        self._look_at_the_clock(span)

    def constant(self, size: int, span: Span | None) -> None:
        """Counts bytes of constants."""
        self._bytes += size
        most = max(self.budget.bytes, self.budget.times * sum(self._stored.values()))
        self._demand(self._bytes <= most, most, "bytes of constants", span)
        self._look_at_the_clock(span)

    def _look_at_the_clock(self, span: Span | None) -> None:
        seconds = self.budget.seconds
        # The thread's CPU time is at most the elapsed time, which takes no system call.
        is_within = monotonic() - self._started <= seconds or thread_time() - self._began <= seconds
        self._demand(is_within, seconds, "seconds of work to be read", span)

    def _demand(self, holds: bool, most: Any, what: str, span: Span | None) -> None:
        if not holds:
            raise OnnxTooLarge(self.model, f"{most:,}", what, span=span).error()
