"""Shows a command's progress on a terminal in one line, and keeps partial results at Ctrl-C."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Event, Thread, current_thread, main_thread
from time import perf_counter
from types import FrameType
from typing import TYPE_CHECKING, TextIO, TypeVar

from tirlite.show.status_line import StatusLine

if TYPE_CHECKING:
    from tirlite.plan import Plan
    from tirlite.plan.search.engine import Listener, Progress

# Seconds between updates, rare enough not to disturb measurements.
_TICK = 0.5
# The exit code of a command ended by Ctrl-C.
INTERRUPTED = 130

R = TypeVar("R")


class Interrupt:
    """Whether Ctrl-C was pressed, even if the interrupted search continued with its best result."""

    def __init__(self) -> None:
        self.is_set = False

    @property
    def code(self) -> int:
        """The exit code of a command that printed its results."""
        return INTERRUPTED if self.is_set else 0


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Records Ctrl-C, which still raises KeyboardInterrupt, while the body runs."""
    interrupt = Interrupt()
    before = signal.getsignal(signal.SIGINT)
    # Only the main thread may set a handler; an ignored or foreign one is kept.
    if current_thread() is not main_thread() or not callable(before):
        yield interrupt
        return

    def note(number: int, frame: FrameType | None) -> None:
        interrupt.is_set = True
        before(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)


def gathered(rows: Iterable[R], name: Callable[[R], str]) -> tuple[list[R], int]:
    """The rows made until Ctrl-C, and the exit code; a terminal shows their number meanwhile."""
    found: list[R] = []

    def so_far() -> str:
        return f"{len(found)} done{f', the last: {name(found[-1])}' if found else ''} (Ctrl-C shows them)"

    with interruptible() as interrupt:
        try:
            with _ticking(so_far):
                for row in rows:
                    found.append(row)
                    if interrupt.is_set:
                        break
        except KeyboardInterrupt:
            interrupt.is_set = True
    if interrupt.is_set:
        _print_note(f"interrupted: {len(found)} done")
    return found, interrupt.code


def printed(rows: Iterable[R], name: Callable[[R], str], text: Callable[[list[R]], str]) -> int:
    """Prints the rows that `gathered` returns; returns the exit code."""
    found, code = gathered(rows, name)
    if found or not code:
        print(text(found))
    return code


@contextmanager
def working(what: str) -> Iterator[None]:
    """Shows what a command does and for how long; at Ctrl-C, prints it."""
    start = perf_counter()
    try:
        with _ticking(lambda: what):
            yield
    except KeyboardInterrupt:
        _print_note(f"interrupted: {what}, {perf_counter() - start:.1f} s")
        raise


@contextmanager
def _ticking(text: Callable[[], str]) -> Iterator[None]:
    """Shows a changing text and the seconds on standard error, if that is a terminal."""
    start, over = perf_counter(), Event()

    def tick() -> None:
        while not over.wait(_TICK):
            line.show(f"{perf_counter() - start:.0f} s: {text()}")

    with _line_on(sys.stderr) as line:
        if not line.is_open:
            yield
            return
        thread = Thread(target=tick, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def _print_note(text: str) -> None:
    if sys.stderr is not None:
        print(text, file=sys.stderr)


@contextmanager
def _line_on(stream: TextIO | None) -> Iterator[StatusLine]:
    line = StatusLine(stream)
    try:
        yield line
    finally:
        line.clear()


@contextmanager
def showing(stream: TextIO | None) -> Iterator[Listener | None]:
    """A listener that shows progress on `stream` while the body runs; None if it is not a terminal."""
    with _line_on(stream) as line:
        yield (lambda progress: line.show(progress_text(progress))) if line.is_open else None


class FirstFit:
    """Records when the first plan was found that fits a capacity, if one is given."""

    def __init__(self, capacity: int | None) -> None:
        self._capacity = capacity
        self._seconds: float | None = None

    def listening(self, listener: Listener | None) -> Listener:
        """A listener that watches for that plan from now on, and calls the other listener too."""
        start = perf_counter()

        def listen(progress: Progress) -> None:
            if self._seconds is None and self._capacity is not None and progress.total <= self._capacity:
                self._seconds = perf_counter() - start
            if listener is not None:
                listener(progress)

        return listen

    def seconds_of(self, plan: Plan) -> float | None:
        """The seconds to that plan; those of the whole plan if no search reported one; None if it does not fit."""
        if self._capacity is None or (isinstance(plan.total, int) and plan.total > self._capacity):
            return None
        return plan.seconds if self._seconds is None else self._seconds


def progress_text(progress: Progress) -> str:
    over = progress.total / progress.bound - 1 if progress.bound else 0.0
    return (
        f"{progress.seconds:.1f} s, {progress.nodes:,} nodes: {progress.total:,} bytes, "
        f"{over:.2%} over the bound of {progress.bound:,} (Ctrl-C takes it)"
    )
