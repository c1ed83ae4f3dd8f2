"""Measures the elementary functions: nanoseconds per element beside NumPy, and the largest error of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tirlite import driver
from tirlite.bench.figures import Figure
from tirlite.cli.turns import turns
from tirlite.ir import Builder, Call, DType, Op, Var, f32, f64
from tirlite.ir.functions.fast_angles import LARGEST
from tirlite.sizes import Dim
from tirlite.target import Target

if TYPE_CHECKING:
    import mpmath  # type: ignore[import-untyped]

# Bars for the error, in ULP.
BAR = 1.0
BAR_OF_FAST = 4.0
_ELEMENTS = 1 << 14

# NumPy functions under another name, and combinations of several without temporaries.
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
# The ranges of arguments for timing.
_RANGES: dict[Op, tuple[float, float]] = {
    **dict.fromkeys((Op.LOG, Op.LOG2, Op.LOG10, Op.SQRT, Op.RSQRT, Op.POW), (0.01, 10.0)),
    **dict.fromkeys((Op.ASIN, Op.ACOS), (-1.0, 1.0)),
    **dict.fromkeys((Op.SIN, Op.COS, Op.TAN), (-100.0, 100.0)),
    Op.LOG1P: (-0.9, 10.0),
}
FUNCTIONS = (
    *(
        Op.SQRT,
        Op.RSQRT,
        Op.RECIPROCAL,
        Op.EXP,
        Op.EXP2,
        Op.EXPM1,
        Op.LOG,
        Op.LOG2,
        Op.LOG10,
        Op.LOG1P,
        Op.POW,
        Op.SIGMOID,
        Op.TANH,
    ),
    *(Op.SINH, Op.COSH, Op.SIN, Op.COS, Op.TAN, Op.ASIN, Op.ACOS, Op.ATAN, Op.ATAN2, Op.ERF),
)
Floats = npt.NDArray[np.floating[Any]]

# The largest arguments with finite results in f64; for f32, values that do not fit are dropped.
_WIDEST = {
    Op.EXP: 745.0,
    Op.EXP2: 1074.0,
    Op.EXPM1: 709.0,
    Op.SINH: 710.0,
    Op.COSH: 710.0,
    Op.TANH: 22.0,
    Op.SIGMOID: 740.0,
    Op.ASIN: 1.0,
    Op.ACOS: 1.0,
    Op.ATAN: 1e5,
    Op.ERF: 6.0,
    Op.SIN: 1e300,
    Op.COS: 1e300,
    Op.TAN: 1e300,
    **dict.fromkeys((Op.FAST_SIN, Op.FAST_COS, Op.FAST_TAN), LARGEST),
}
_CORNERS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 10.0, 89.0, 100.0, 700.0, 1e-40, 1e-310, 1e10, 1e20, 1e30)


def math_figures(*, quick: bool = False) -> Iterator[Figure]:
    """For each function and type, the worst error in ULP, and the time per element of tirlite and NumPy.

    A fast variant has its own row after that of the exact function.
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
    """The row of the first of these kernels; the others are timed for comparison."""
    arguments = samples(op, dtype, 30 if quick else 600)
    results = np.empty_like(arguments[0])
    first = next(iter(kernels.values()))
    first(*arguments, results)
    error, where = worst_error(op, dtype, arguments, results)
    seconds = _seconds(op.exact, dtype, kernels, 3 if quick else 101)
    ours = seconds.pop("")
    ratios = ", ".join(f"{name}{_nanoseconds(each)}, ratio {ours / each:.2f}" for name, each in seconds.items())
    place = ", ".join(f"{value:.9g}" for value in where)
    note = f"{_nanoseconds(ours)} an element{ratios and ', '}{ratios}; worst at {place}"
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
    """The least seconds of a call of each kernel and of NumPy, called in turns."""
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
    timed = turns([*calls.values()], runs)
    return {name: min(each) for name, each in zip(calls, timed, strict=True)}


def exact(op: Op) -> Callable[..., mpmath.mpf]:
    """The function in mpmath's arithmetic."""
    import mpmath

    named: dict[Op, Callable[..., mpmath.mpf]] = {
        Op.EXP2: lambda x: mpmath.power(2, x),
        Op.SIGMOID: lambda x: 1 / (1 + mpmath.exp(-x)),
        Op.LOG2: lambda x: mpmath.log(x, 2),
        Op.LOG1P: mpmath.log1p,
        Op.POW: mpmath.power,
        Op.RSQRT: lambda x: 1 / mpmath.sqrt(x),
        Op.RECIPROCAL: lambda x: 1 / x,
    }
    return named.get(op.exact) or getattr(mpmath, op.label)


def samples(op: Op, dtype: DType, count: int) -> list[Floats]:
    """About `count` arguments at which the function has a value, including corner cases; deterministic."""
    random = np.random.default_rng(0)
    widest = _WIDEST.get(op, _WIDEST.get(op.exact, 1e300))
    op, first = op.exact, _spread(widest, random, count)
    arrays = [first]
    if op is Op.POW:
        base = np.exp(random.uniform(-30, 30, len(first)))
        arrays = [base, random.uniform(-740, 705, len(first)) / np.log(base)]
    elif op is Op.ATAN2:
        arrays = [first, first[random.permutation(len(first))]]
    elif op is Op.LOG1P:
        arrays = [np.where(first <= -1, -first, first)]
    elif op is Op.RECIPROCAL:
        arrays = [np.where(first == 0, 1, first)]
    elif op in (Op.LOG, Op.LOG2, Op.LOG10, Op.RSQRT, Op.SQRT):
        arrays = [np.where(first == 0, 1, np.abs(first))]
    with np.errstate(over="ignore", under="ignore"):
        cut = [array.astype(dtype.numpy) for array in arrays]
    keeps = np.all([np.isfinite(array) for array in cut], axis=0)
    if op in (Op.LOG, Op.LOG2, Op.LOG10, Op.RSQRT, Op.POW):
        keeps &= cut[0] > 0
    return [array[keeps] for array in cut]


def _spread(most: float, random: np.random.Generator, count: int) -> npt.NDArray[np.float64]:
    """Values up to `most`: uniform, uniform up to 10, uniform in magnitude, and corner cases; of both signs."""
    even = np.concatenate([random.uniform(0, end, count // 3) for end in (most, min(most, 10.0))])
    sizes = np.exp(random.uniform(-40, np.log(most), count // 3))
    corners = np.array([corner for corner in _CORNERS if corner <= most])
    sizes = np.concatenate([corners, even, sizes])
    return np.copysign(sizes, random.uniform(-1, 1, len(sizes)))


def worst_error(op: Op, dtype: DType, arguments: list[Floats], results: Floats) -> tuple[float, tuple[float, ...]]:
    """The largest error in units of the last place of the exact value, and the arguments there."""
    import mpmath

    form, function = np.finfo("f4" if dtype == f32 else "f8"), exact(op)
    worst, where = mpmath.mpf(0), tuple(float(array[0]) for array in arguments)
    largest = mpmath.mpf(float(form.max))
    with mpmath.workprec(1300):
        for result, *values in zip(results, *arguments, strict=True):
            value = function(*(mpmath.mpf(float(each)) for each in values))
            if abs(value) > largest:
                continue
            exponent = max(mpmath.frexp(value)[1] if value else form.minexp, form.minexp + 1)
            unit = mpmath.ldexp(1, exponent - form.nmant - 1)
            error = abs(mpmath.mpf(float(result)) - value) / unit if np.isfinite(result) else mpmath.inf
            if error > worst:
                worst, where = error, tuple(float(each) for each in values)
    return float(worst), where
