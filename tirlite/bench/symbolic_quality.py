"""Measures how good a plan is for all values of its dims: its size over the lower bound, and how fast offsets are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import exp, log
from random import Random
from statistics import fmean, median
from time import perf_counter, perf_counter_ns

import numpy as np
import numpy.typing as npt

from tirlite.diag import InternalError, Message
from tirlite.plan import PerShape, Plan, Problem, offset_evaluator
from tirlite.plan.search.engine import Engine
from tirlite.record import record
from tirlite.sizes import Dim, Size, evaluate
from tirlite.solver import compiled_offsets

Binding = Mapping[Dim, int]
_LARGEST = 4096
Values = tuple[int, ...]
_REPEATS, _TIMES = 9, 100


@record
class Quality:
    """Bytes over the lower bound at the same binding: on average, and where it is worst."""

    mean: float
    worst: float


@record
class Replanned:
    """The quality of plans for one binding each, and the milliseconds that a new binding takes: median and most."""

    quality: Quality
    milliseconds: float
    most: float


def bindings(dims: Sequence[Dim], count: int) -> list[Binding]:
    """Values that the facts allow, as often between 10 and 20 as between 1,000 and 2,000; always the same ones."""
    random = Random(0)
    return [{dim: _value(dim, random.random()) for dim in dims} for _ in range(count)]


def _value(dim: Dim, part: float) -> int:
    low, step = max(dim.low, 1), dim.multiple_of
    high = dim.high if dim.high is not None else max(_LARGEST, 16 * low)
    value = int(exp(log(low) + part * (log(high + 1) - log(low)))) // step * step
    return min(max(value, dim.low), high)


def quality(plan: Plan, samples: Sequence[Binding]) -> tuple[Quality, Quality]:
    """That of the plan, and that of the policy to reuse storage for sizes with equal expressions alone."""
    live, sizes = _live_counts(plan.problem)
    values = np.array([[evaluate(size, sample) for sample in samples] for size in sizes], np.float64)
    bound = (live @ values).max(axis=0)
    ours = np.array([evaluate(plan.total, sample) for sample in samples], np.float64)
    equal = live.max(axis=0) @ values
    return _over(ours, bound), _over(equal, bound)


def replanned(problem: Problem, samples: Sequence[Binding], engine: Engine | None = None) -> Replanned:
    """That of `PerShape` on the problem. The plans are checked; a binding that comes twice is timed once."""
    shapes = PerShape(problem, engine=engine)
    live, sizes = _live_counts(problem)
    seconds: list[float] = []
    ratios: list[float] = []
    for values in dict.fromkeys(tuple(sample[dim] for dim in shapes.dims) for sample in samples):
        start = perf_counter()
        entries = shapes.entries_at(values)
        seconds.append(perf_counter() - start)
        binding = dict(zip(shapes.dims, values, strict=True))
        bound = float((live @ np.array([evaluate(size, binding) for size in sizes], np.float64)).max())
        ratios.append(sum(entries[: len(shapes.arenas)]) / bound if bound else 1.0)
    return Replanned(Quality(fmean(ratios), max(ratios)), median(seconds) * 1e3, max(seconds) * 1e3)


def _over(total: npt.NDArray[np.float64], bound: npt.NDArray[np.float64]) -> Quality:
    ratio = np.where(bound > 0, total / np.maximum(bound, 1), 1.0)
    return Quality(float(ratio.mean()), float(ratio.max()))


def _live_counts(problem: Problem) -> tuple[npt.NDArray[np.float64], list[Size]]:
    """At each time something is born, how many requests of each size are live; and the sizes."""
    places: dict[Size, int] = {}
    for request in problem.requests:
        places.setdefault(request.size, len(places))
    return np.array(list(_snapshots(problem, places)), np.float64), list(places)


def _snapshots(problem: Problem, places: Mapping[Size, int]) -> Iterator[list[int]]:
    changes = sorted(
        change
        for request in problem.requests
        for low, high in request.live
        for change in ((low, 1, places[request.size]), (high, -1, places[request.size]))
    )
    counts = [0] * len(places)
    for (time, change, place), following in zip(changes, [*changes[1:], None], strict=True):
        counts[place] += change
        if following is None or following[0] > time:
            yield list(counts)


class OffsetsDiffer(Message):
    """Native code and Python give different offsets.

    Example: None is known: this is a fault of tirlite.
    Fix: Report it, with the plan as `plan.to_json()` writes it.
    """

    code = "offsets-differ"
    raises = InternalError
    title = "the offsets at {values} differ between native code and Python"
    help = "this is a fault of tirlite; please report it with the plan, `plan.to_json()`"

    values: str


@record
class OffsetSpeed:
    """Nanoseconds for all offsets at one binding, medians: by `plan.offset_evaluator`, and by `compiled_offsets`."""

    python: float
    native: float


def offset_speed(plan: Plan, samples: Sequence[Mapping[Dim, int]]) -> OffsetSpeed:
    """Both, measured by turns at some of the samples; at all samples they must agree."""
    given = [tuple(sample[dim] for dim in plan.problem.dims) for sample in samples]
    python, native = offset_evaluator(plan), compiled_offsets(plan)
    for values in given:
        if not np.array_equal(native(values), python(values)):
            raise OffsetsDiffer(str(values)).error()
    chosen = given[:: max(len(given) // _REPEATS, 1)]
    pairs = [(_nanoseconds(python, values), _nanoseconds(native, values)) for values in chosen]
    return OffsetSpeed(*map(median, zip(*pairs, strict=True)))


def _nanoseconds(evaluate: Callable[[Values], object], values: Values) -> float:
    start = perf_counter_ns()
    for _ in range(_TIMES):
        evaluate(values)
    return (perf_counter_ns() - start) / _TIMES
