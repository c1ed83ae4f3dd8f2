"""Measures the seconds until a plan that fits arrives, as a search tells of itself; and what a new process does."""

from __future__ import annotations

import json
import subprocess
import sys
from time import perf_counter

from tirlite.plan.search.engine import Progress
from tirlite.record import record


class Arrival:
    """Notes when a search has a plan of at most so many bytes for the first time."""

    def __init__(self, capacity: int | None) -> None:
        self._capacity = capacity
        self._start = perf_counter()
        self._seconds: float | None = None

    def listen(self, progress: Progress) -> None:
        """For `plan.solve(listener=)`; one memory is searched."""
        if self._seconds is None and self._capacity is not None and progress.total <= self._capacity:
            self._seconds = perf_counter() - self._start

    def at(self, total: int, seconds: float) -> float | None:
        """Seconds to the first plan that fits, where the last one needs `total` bytes and is there after `seconds`."""
        if self._capacity is None or total > self._capacity:
            return None
        return seconds if self._seconds is None else min(self._seconds, seconds)


@record
class Fresh:
    """The gap that a new process reaches, and the seconds that it plans for that."""

    gap: float
    seconds: float


def in_new_process(file: str, strategy: str, limit: float) -> Fresh:
    """What the command reaches in a new process, within this limit."""
    options = ["--strategy", strategy, "--time-limit", str(limit), "--json"]
    command = [sys.executable, "-m", "tirlite", "plan", file, *options]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return Fresh(told["gap"], told["seconds"])
