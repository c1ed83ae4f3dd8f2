"""Makes arguments that try an elementary function, and its exact values. SymPy brings mpmath along."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tirlite.ir import DType, Op, f32
from tirlite.ir.functions.fast_angles import LARGEST

if TYPE_CHECKING:
    import mpmath  # type: ignore[import-untyped]

Floats = npt.NDArray[np.floating[Any]]

# Up to where the results are numbers, in f64; f32 leaves out what does not fit.
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


def exact(op: Op) -> Callable[..., mpmath.mpf]:
    """The function in mpmath's numbers."""
    import mpmath

    named: dict[Op, Callable[..., mpmath.mpf]] = {
        Op.EXP2: lambda x: mpmath.power(2, x),
        Op.SIGMOID: lambda x: 1 / (1 + mpmath.exp(-x)),
        Op.LOG2: lambda x: mpmath.log(x, 2),
        Op.LOG1P: mpmath.log1p,
        Op.POW: mpmath.power,
        Op.RSQRT: lambda x: 1 / mpmath.sqrt(x),
    }
    return named.get(op.exact) or getattr(mpmath, op.label)


def samples(op: Op, dtype: DType, count: int) -> list[Floats]:
    """About `count` arguments each, corners among them, at which the function has a value; the same at each call."""
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
    elif op in (Op.LOG, Op.LOG2, Op.LOG10, Op.RSQRT, Op.SQRT):
        arrays = [np.where(first == 0, 1, np.abs(first))]
    with np.errstate(over="ignore", under="ignore"):
        cut = [array.astype(dtype.numpy) for array in arrays]
    keeps = np.all([np.isfinite(array) for array in cut], axis=0)
    if op in (Op.LOG, Op.LOG2, Op.LOG10, Op.RSQRT, Op.POW):
        keeps &= cut[0] > 0
    return [array[keeps] for array in cut]


def _spread(most: float, random: np.random.Generator, count: int) -> npt.NDArray[np.float64]:
    """Evenly up to `most` and up to 10, evenly by order of magnitude, and corners; of both signs."""
    even = np.concatenate([random.uniform(0, end, count // 3) for end in (most, min(most, 10.0))])
    sizes = np.exp(random.uniform(-40, np.log(most), count // 3))
    corners = np.array([corner for corner in _CORNERS if corner <= most])
    sizes = np.concatenate([corners, even, sizes])
    return np.copysign(sizes, random.uniform(-1, 1, len(sizes)))


def worst_error(op: Op, dtype: DType, arguments: list[Floats], results: Floats) -> tuple[float, tuple[float, ...]]:
    """The largest distance from the exact value, in units of its last place, and where it is."""
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
