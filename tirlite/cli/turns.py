"""Times several calls, made in turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from statistics import median
from time import perf_counter, sleep

_FEWEST = 3


def turns(
    calls: Sequence[Callable[[], object]],
    runs: int,
    *,
    patience: float = inf,
    rest: float = 0.0,
    is_settled: bool = False,
) -> list[list[float]]:
    """The seconds of each of the calls, which take turns so that other load on the machine slows all alike.
    Each is first called once untimed. A call that took `patience` seconds in total is made at least three times, then
    no more. `rest`: seconds of sleep before each call. `is_settled`: each timed call directly follows an untimed one of
    the same, as in a program that repeats it, so that others' cache contents and threads do not matter.
    """
    seconds: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()
    for turn in range(runs):
        for call, own in zip(calls, seconds, strict=True):
            if turn >= _FEWEST and sum(own) >= patience:
                continue
            if rest:
                sleep(rest)
            if is_settled:
                call()
            start = perf_counter()
            call()
            own.append(perf_counter() - start)
    return seconds


def medians(
    calls: Sequence[Callable[[], object]], runs: int, *, patience: float = inf, is_settled: bool = False
) -> list[float]:
    """The median seconds of each of the calls, made in `turns`."""
    return [median(own) for own in turns(calls, runs, patience=patience, is_settled=is_settled)]
