"""Measures the elementary functions: nanoseconds an element beside NumPy and the largest error of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from tirlite import driver
from tirlite.bench.figures import Figure
from tirlite.bench.math_samples import samples, worst_error
from tirlite.ir import Builder, Call, DType, Op, Var, f32, f64
from tirlite.sizes import Dim
from tirlite.target import Target

# In ULP, which are the unit of the bar; the time is told beside it.
BAR = 1.0
BAR_OF_FAST = 4.0
_ELEMENTS = 1 << 14

# What NumPy has no one function for is done in several, without arrays in between.
_NUMPY: dict[Op, Callable[..., object] | None] = {
    Op.ASIN: np.arcsin,
    Op.ACOS: np.arccos,
    Op.ATAN: np.arctan,
    Op.ATAN2: np.arctan2,
    Op.POW: np.power,
    Op.ERF: None,
    Op.RSQRT: lambda x, out: np.divide(1, np.sqrt(x, out=out), out=out),
    Op.SIGMOID: lambda x, out: np.divide(1, np.add(1, np.exp(np.negative(x, out=out), out=out), out=out), out=out),
}
# Where arguments of common size lie, for the time.
_RANGES: dict[Op, tuple[float, float]] = {
    **dict.fromkeys((Op.LOG, Op.LOG2, Op.LOG10, Op.SQRT, Op.RSQRT, Op.POW), (0.01, 10.0)),
    **dict.fromkeys((Op.ASIN, Op.ACOS), (-1.0, 1.0)),
    **dict.fromkeys((Op.SIN, Op.COS, Op.TAN), (-100.0, 100.0)),
    Op.LOG1P: (-0.9, 10.0),
}
FUNCTIONS = (
    *(Op.SQRT, Op.RSQRT, Op.EXP, Op.EXP2, Op.EXPM1, Op.LOG, Op.LOG2, Op.LOG10, Op.LOG1P, Op.POW, Op.SIGMOID, Op.TANH),
    *(Op.SINH, Op.COSH, Op.SIN, Op.COS, Op.TAN, Op.ASIN, Op.ACOS, Op.ATAN, Op.ATAN2, Op.ERF),
)


def math_figures(*, quick: bool = False) -> Iterator[Figure]:
    """For each function and type the worst error in ULP, with the time of an element, tirlite's and NumPy's.

    A fast variant has a row of its own behind that of the exact function.
    """
    from tirlite.ir.functions import has_fast

    for op in FUNCTIONS:
        for dtype in (f32, f64):
            kernel = _mapping(op, dtype)
            if not has_fast(op, dtype):
                yield _figure(op, dtype, {"": kernel}, quick=quick)
                continue
            fast = _mapping(op.fast, dtype)
            yield _figure(op, dtype, {"": kernel}, quick=quick)
            yield _figure(op.fast, dtype, {"": fast, "exact ": kernel}, quick=quick)


def _figure(op: Op, dtype: DType, kernels: Mapping[str, driver.Kernel], *, quick: bool) -> Figure:
    """The row of the first of these kernels; the others are timed beside it."""
    arguments = samples(op, dtype, 30 if quick else 600)
    results = np.empty_like(arguments[0])
    first = next(iter(kernels.values()))
    first(*arguments, results)
    error, where = worst_error(op, dtype, arguments, results)
    seconds = _seconds(op.exact, dtype, kernels, 3 if quick else 101)
    ours = seconds.pop("")
    told = ", ".join(f"{name}{_nanoseconds(each)}, ratio {ours / each:.2f}" for name, each in seconds.items())
    place = ", ".join(f"{value:.9g}" for value in where)
    note = f"{_nanoseconds(ours)} an element{told and ', '}{told}; worst at {place}"
    return Figure(f"{op.label} {dtype}{' fast' * op.is_fast}", error, "ULP", BAR_OF_FAST if op.is_fast else BAR, note)


def _nanoseconds(seconds: float) -> str:
    return f"{1e9 * seconds / _ELEMENTS:.2f} ns"


def _mapping(op: Op, dtype: DType) -> driver.Kernel:
    builder, n = Builder(op.label), Var("n", dim=Dim("n"))
    assert op.arity is not None
    sources = [builder.param(f"x{number}", dtype[n]) for number in range(op.arity)]
    target = builder.param("y", dtype[n])
    with builder.for_("i", 0, n) as i:
        builder.store(target, i, Call(dtype, op, tuple(source[i] for source in sources)))
    return driver.compile(builder.build(), target=Target.host(workers=1))


def _seconds(op: Op, dtype: DType, kernels: Mapping[str, driver.Kernel], runs: int) -> dict[str, float]:
    """The least time of a call of each and of NumPy, called in turn: whatever else runs only adds to it."""
    random, (low, high) = np.random.default_rng(0), _RANGES.get(op, (-8.0, 8.0))
    assert op.arity is not None
    arguments = [random.uniform(low, high, _ELEMENTS).astype(dtype.numpy) for _ in range(op.arity)]
    result = np.empty_like(arguments[0])
    peer = _NUMPY[op] if op in _NUMPY else getattr(np, op.label)
    calls: dict[str, Callable[[], object]] = {}
    for name, kernel in kernels.items():
        calls[name] = partial(kernel, *arguments, result)
    if peer is not None:
        calls["NumPy "] = partial(peer, *arguments, out=result)
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(runs):
        for name, call in calls.items():
            seconds[name].append(_timed(call))
    return {name: min(each) for name, each in seconds.items()}


def _timed(work: Callable[[], Any]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start
