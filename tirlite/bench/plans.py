"""Measures the planner's quality and speed on instances, with constant and with symbolic sizes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import exp, log
from random import Random
from statistics import fmean, median
from time import perf_counter, perf_counter_ns, process_time

import numpy as np
import numpy.typing as npt

from tirlite.bench.plan_instances import Instance, cut
from tirlite.cli.progress import FirstFit
from tirlite.diag import InternalError, Message, TirliteError
from tirlite.plan import PerShape, Plan, Problem, offset_evaluator, solve
from tirlite.plan.bound import maximal_points
from tirlite.plan.search.engine import Engine, Listener
from tirlite.record import record, replace
from tirlite.sizes import Dim, Size, evaluate
from tirlite.sizes.evaluate import as_number
from tirlite.solver import compiled_offsets

Binding = Mapping[Dim, int]
_LARGEST = 4096
Values = tuple[int, ...]
_REPEATS, _TIMES = 9, 100


@record
class Quality:
    """Bytes relative to the lower bound at the same binding: in the mean, and at worst."""

    mean: float
    worst: float


@record
class Replanned:
    """The quality of plans made per binding, and the milliseconds that a new binding takes: median and most."""

    quality: Quality
    milliseconds: float
    most: float


def bindings(dims: Sequence[Dim], count: int) -> list[Binding]:
    """Deterministic samples within the facts, uniform in magnitude."""
    random = Random(0)
    return [{dim: _value(dim, random.random()) for dim in dims} for _ in range(count)]


def _value(dim: Dim, part: float) -> int:
    low, step = max(dim.low, 1), dim.multiple_of
    high = dim.high if dim.high is not None else max(_LARGEST, 16 * low)
    value = int(exp(log(low) + part * (log(high + 1) - log(low)))) // step * step
    return min(max(value, dim.low), high)


def quality(plan: Plan, samples: Sequence[Binding]) -> tuple[Quality, Quality]:
    """The quality of the plan, and of reusing storage only for equal size expressions."""
    live, sizes = _live_counts(plan.problem)
    values = np.array([[evaluate(size, sample) for sample in samples] for size in sizes], np.float64)
    bound = (live @ values).max(axis=0)
    ours = np.array([evaluate(plan.total, sample) for sample in samples], np.float64)
    equal = live.max(axis=0) @ values
    return _over(ours, bound), _over(equal, bound)


def replanned(problem: Problem, samples: Sequence[Binding], engine: Engine | None = None) -> Replanned:
    """The quality of `PerShape` on the problem. Plans are checked; a repeated binding is timed once."""
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
    """The number of live requests of each size at each maximal point, and the sizes."""
    sizes = list(dict.fromkeys(request.size for request in problem.requests))
    one_of_each = dict(zip(sizes, np.eye(len(sizes), dtype=int).tolist(), strict=True))
    requests = problem.requests
    points = maximal_points([each.live for each in requests], [one_of_each[each.size] for each in requests])
    return np.array([counts for _, counts in points], np.float64), sizes


class OffsetsDiffer(Message):
    """Native code and Python give different offsets.

    Example: None is known: this is a fault of tirlite.
    """

    raises = InternalError
    title = "the offsets at {values} differ between native code and Python"
    help = "this is a fault of tirlite; please report it with the plan, `plan.to_json()`"


@record
class OffsetSpeed:
    """Median nanoseconds to compute all offsets at a binding: by `plan.offset_evaluator` and by `compiled_offsets`."""

    python: float
    native: float


def offset_speed(plan: Plan, samples: Sequence[Mapping[Dim, int]]) -> OffsetSpeed:
    """Both, measured in turns at some of the samples; they must agree at all samples."""
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


# The seconds after which the gap is recorded, and the number of sampled bindings.
MOMENTS = (0.1, 1.0, 10.0)
_BINDINGS = 1_000
# Strategies that get better with time.
SEARCHES = ("auto", "exact")
_OVERDRAFT = 1.25
# The default bars: seconds, and for more buffers than `_MANY` one percent over the bound.
_SECONDS, _MANY, _MANY_GAP = 60.0, 10_000, 0.01


@record
class Row:
    """One instance with constant sizes.
    `gaps`: those at each of MOMENTS with the compiled engine, None if there was no plan yet. `fit`: the seconds to the
    first plan within the capacity, or None. `elsewhere`: another planner's published seconds. `fresh`: the result of a
    new process at the first moment. `cpu`: the CPU seconds of all threads.
    """

    name: str
    group: str
    strategy: str
    buffers: int
    lower_bound: int
    total: int
    total_bar: int
    proved: bool
    seconds: float
    seconds_bar: float
    megabytes: float | None
    gaps: tuple[float | None, ...]
    fit: float | None = None
    elsewhere: float | None = None
    fresh: Fresh | None = None
    cpu: float | None = None

    @property
    def gap(self) -> float:
        """The excess over the lower bound, relative to it."""
        return self.total / self.lower_bound - 1 if self.lower_bound else 0.0

    @property
    def met(self) -> bool:
        return self.total <= self.total_bar and self.seconds <= self.seconds_bar


@record
class SymbolicRow:
    """One instance with symbolic sizes.
    `ours`: the quality of its one plan. `equal`: that of reusing storage only for equal expressions. `shapes`: that of
    a plan per binding. `offsets`: the time to compute the offsets of a binding.
    """

    name: str
    strategy: str
    buffers: int
    names: tuple[str, ...]
    seconds: float
    megabytes: float | None
    ours: Quality
    equal: Quality
    shapes: Replanned
    offsets: OffsetSpeed


@record
class Failure:
    """An instance without a plan, and the error."""

    name: str
    error: str


Result = Row | SymbolicRow | Failure


@record
class How:
    """The engine that searches, its time limit in seconds, and its threads."""

    engine: Engine
    time_limit: float = MOMENTS[-1]
    threads: int = 1


def measured(instances: Sequence[Instance], how: How, strategy: str | None = None) -> Iterator[Result]:
    """A result for each instance, in order. Every plan has passed `check`."""
    # Let the engine compile itself first, which is not part of any plan's time.
    solve(cut(64), "exact", budget=100, engine=how.engine)
    for instance in instances:
        try:
            yield _measured(instance, how, strategy or instance.strategy)
        except TirliteError as error:
            yield Failure(instance.name, str(error))


def _measured(instance: Instance, how: How, strategy: str) -> Row | SymbolicRow:
    problem = instance.make()
    count = len(problem.requests)
    fitting = FirstFit(instance.capacity)
    begun = process_time()
    plan, seconds = _solved(problem, how, strategy, fitting.listening(None))
    cpu = process_time() - begun
    if problem.dims:
        samples = bindings(problem.dims, _BINDINGS)
        ours, equal = quality(plan, samples)
        shapes = replanned(problem, samples, how.engine)
        names = tuple(dim.name for dim in problem.dims)
        speed = offset_speed(plan, samples)
        return SymbolicRow(instance.name, strategy, count, names, seconds, _megabytes(), ours, equal, shapes, speed)
    total, bound = as_number(plan.total), as_number(plan.lower_bound)
    gap = instance.gap if instance.gap is not None else _MANY_GAP if count > _MANY else 0.0
    bar = instance.capacity if instance.capacity is not None else int(bound * (1 + gap))
    most_seconds = instance.seconds if instance.seconds is not None else _SECONDS
    gaps = tuple(_gaps(plan, seconds, how, strategy))
    is_fresh = instance.capacity is not None and instance.file is not None and strategy in SEARCHES
    return Row(
        instance.name,
        instance.group,
        strategy,
        count,
        bound,
        total,
        bar,
        plan.proved_optimal,
        seconds,
        most_seconds,
        _megabytes(),
        gaps,
        fitting.seconds_of(plan),
        instance.elsewhere,
        in_new_process(str(instance.file), strategy, MOMENTS[0]) if is_fresh else None,
        cpu,
    )


def _solved(problem: Problem, how: How, strategy: str, listener: Listener | None = None) -> tuple[Plan, float]:
    """A checked plan, and the seconds that it took, including the check."""
    start = perf_counter()
    limits = None, how.time_limit, how.engine
    plan = solve(problem, strategy, *limits, listener, threads=how.threads)
    return plan, perf_counter() - start


def _gaps(plan: Plan, seconds: float, how: How, strategy: str) -> Iterator[float | None]:
    """The gap at each of MOMENTS, each from its own run, which may overdraw its time by a quarter."""
    bound = as_number(plan.lower_bound)
    known = [(seconds, plan)]
    for moment in MOMENTS:
        if strategy in SEARCHES and seconds > moment * _OVERDRAFT:
            found, took = _solved(plan.problem, replace(how, time_limit=moment), strategy)
            known.append((took, found))
        totals = [as_number(found.total) for took, found in known if took <= moment * _OVERDRAFT]
        yield None if not totals else min(totals) / bound - 1 if bound else 0.0


def _megabytes() -> float | None:
    """The peak memory of this process so far, if the system reports it."""
    if sys.platform == "win32":
        return None
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / (1 << 20 if sys.platform == "darwin" else 1 << 10)


@record
class Fresh:
    """The gap that a new process reaches, and its seconds of planning."""

    gap: float
    seconds: float


def in_new_process(file: str, strategy: str, limit: float) -> Fresh:
    """The result of the command in a new process with this time limit."""
    options = ["--strategy", strategy, "--time-limit", str(limit), "--json"]
    command = [sys.executable, "-m", "tirlite", "plan", file, *options]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return Fresh(found["gap"], found["seconds"])
