"""Measures the median time of each of several calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from statistics import median
from time import perf_counter

_FEWEST = 3


def medians(
    calls: Sequence[Callable[[], object]], runs: int, *, patience: float = inf, is_settled: bool = False
) -> list[float]:
    """The median seconds of each of the calls. They are made in turn, so that other work slows all of them.

    Each is made once before. No turn but the first three is begun after `patience` seconds. With `is_settled` each
    timed call follows one of the same that is not timed, as it does where a program makes one call again and again:
    what another left in caches, and its threads, are of no matter then.
    """
    seconds: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()
    begun = perf_counter()
    for turn in range(runs):
        if turn >= _FEWEST and perf_counter() - begun > patience:
            break
        for call, own in zip(calls, seconds, strict=True):
            if is_settled:
                call()
            start = perf_counter()
            call()
            own.append(perf_counter() - start)
    return [median(own) for own in seconds]
