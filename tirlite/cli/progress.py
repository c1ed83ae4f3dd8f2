"""Shows on a terminal how far a search is: one line that is written over and over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from tirlite.plan import Plan
    from tirlite.plan.search.engine import Listener, Progress

# A search that is over sooner shows nothing, and seconds between two lines.
_QUIET, _EVERY = 0.5, 0.2
_CLEAR = "\r\x1b[K"


@contextmanager
def showing(stream: TextIO | None) -> Iterator[Listener | None]:
    """A listener that shows progress on `stream`, until the search is left; None where no terminal is open there."""
    if stream is None or not stream.isatty():
        yield None
        return
    line = _Line(stream)
    try:
        yield line.listen
    finally:
        line.clear()


class FirstFit:
    """When the first plan was found that fits a capacity, if one is given."""

    def __init__(self, capacity: int | None) -> None:
        self._capacity = capacity
        self._seconds: float | None = None

    def listening(self, listener: Listener | None) -> Listener:
        """A listener that looks for that plan, from now on, and tells the other one too."""
        start = perf_counter()

        def listen(progress: Progress) -> None:
            if self._seconds is None and self._capacity is not None and progress.total <= self._capacity:
                self._seconds = perf_counter() - start
            if listener is not None:
                listener(progress)

        return listen

    def seconds_of(self, plan: Plan) -> float | None:
        """Seconds to that plan: those of the whole plan where no search told of one."""
        if self._capacity is None:
            return None
        return plan.seconds if self._seconds is None else self._seconds


class _Line:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._next = perf_counter() + _QUIET
        self._is_shown = False

    def listen(self, progress: Progress) -> None:
        if perf_counter() < self._next:
            return
        self._next = perf_counter() + _EVERY
        self._is_shown = True
        self._stream.write(_CLEAR + told(progress))
        self._stream.flush()

    def clear(self) -> None:
        if self._is_shown:
            self._stream.write(_CLEAR)
            self._stream.flush()


def told(progress: Progress) -> str:
    """The progress in one line."""
    over = progress.total / progress.bound - 1 if progress.bound else 0.0
    return (
        f"{progress.seconds:.1f} s, {progress.nodes:,} nodes: {progress.total:,} bytes, "
        f"{over:.2%} over the bound of {progress.bound:,} (Ctrl-C takes it)"
    )
