"""erf: an f64 Term in, an f64 Term out."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import factorial

from tirlite.ir.formula import Term
from tirlite.ir.functions.constants import erf as exact_erf
from tirlite.ir.functions.constants import exp as exact_exp
from tirlite.ir.functions.constants import parts, two_over_root_pi
from tirlite.ir.functions.inverse import with_sign
from tirlite.ir.functions.pairs import sum_of_larger
from tirlite.ir.functions.series import economised, polynomial

_ROUNDER = 1.5 * 2.0**52
_ROUNDER_BITS = 0x4338000000000000
_STEPS = 16  # of the table, from one integer to the next
_LAST = 6  # erf is 1 from here on
_TERMS = 10


@cache
def _near_zero() -> tuple[float, ...]:
    """(erf(x) / x - 1) in x^2, up to 1/4."""
    series = [two_over_root_pi() * Fraction((-1) ** k, factorial(k) * (2 * k + 1)) for k in range(20)]
    series[0] -= 1
    return economised(series, Fraction(0), Fraction(2501, 10000), 10)


@cache
def _table() -> tuple[tuple[float, ...], ...]:
    """erf at the steps, in two parts, and its derivative there."""
    points = [Fraction(step, _STEPS) for step in range(_LAST * _STEPS + 1)]
    values = [parts(exact_erf(point), 2) for point in points]
    slopes = [float(two_over_root_pi() * exact_exp(-point * point)) for point in points]
    return tuple(value[0] for value in values), tuple(value[1] for value in values), tuple(slopes)


def erf(x: Term) -> Term:
    """From 1/2 on, by the series about the nearest step c.

    The derivative at c + h is that at c times e^(-2ch - h^2), whose coefficients b_k in powers of h follow from each
    other: b_(k+1) = -2 (c b_k + b_(k-1)) / (k + 1).
    """
    size = abs(x)
    z = size * size
    small = size + size * polynomial(_near_zero(), z)
    bounded = (size > float(_LAST)).where(float(_LAST), size)
    shifted = bounded * float(_STEPS) + _ROUNDER
    c = (shifted - _ROUNDER) * (1.0 / _STEPS)
    h = bounded - c
    row = (shifted.bits - _ROUNDER_BITS) & 127
    row = (row > _LAST * _STEPS).where(_LAST * _STEPS, row)
    high, low, slope = (row.lookup(column) for column in _table())
    before, current = x.like(0.0), x.like(1.0)
    coefficients = [current]
    for k in range(_TERMS):
        before, current = current, (c * current + before) * (-2.0 / (k + 1))
        coefficients.append(current)
    integral = coefficients[-1] * (1.0 / (_TERMS + 1))
    for k in range(_TERMS - 1, -1, -1):
        integral = integral * h + coefficients[k] * (1.0 / (k + 1))
    start = sum_of_larger(high, slope * h * integral)
    large = start.high + (start.low + low)
    result = (size < 0.5).where(small, large)
    return with_sign(result, x)
