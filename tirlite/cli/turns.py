"""Builds of one kernel in, the median time of each out."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from time import perf_counter

from tirlite import driver


def medians(builds: Sequence[driver.Kernel], arguments: tuple[object, ...], runs: int) -> list[float]:
    """The median seconds of a call of each build. They are called in turn, so that other work slows all of them."""
    seconds: list[list[float]] = [[] for _ in builds]
    for build in builds:
        build(*arguments)
    for _ in range(runs):
        for build, own in zip(builds, seconds, strict=True):
            start = perf_counter()
            build(*arguments)
            own.append(perf_counter() - start)
    return [median(own) for own in seconds]
