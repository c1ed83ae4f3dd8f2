"""Measures the nanoseconds that all symbolic offsets of a plan take at one binding, by Python and native."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from time import perf_counter_ns

import numpy as np

from tirlite.diag import InternalError, Message
from tirlite.plan import Plan, offset_evaluator
from tirlite.record import record
from tirlite.sizes import Dim
from tirlite.solver import compiled_offsets

Values = tuple[int, ...]
_REPEATS, _TIMES = 9, 100


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
