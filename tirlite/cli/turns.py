"""Measures the times of several calls, made in turn."""

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
    """The seconds of each of the calls. They are made in turn, so that other work slows all of them.

    Each is made once before. Of a call that took `patience` seconds in all there are three times and no more. Before
    each call so many seconds of `rest` go by. With `is_settled` each timed call follows one of the same that is not
    timed, as it does where a program makes one call again and again: what another left in caches, and its threads, are
    of no matter then.
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
