"""erf of a Term, in its type; from 1/2 on by a table and a series."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import cos, factorial, pi
from typing import NamedTuple

from tirlite.ir.dtype import f32, f64
from tirlite.ir.formula import Term
from tirlite.ir.functions.constants import erf as exact_erf, exp as exact_exp, parts, two_over_root_pi
from tirlite.ir.functions.fast_single import grown
from tirlite.ir.functions.pairs import sum_of_larger
from tirlite.ir.functions.series import economised, fused_polynomial, interpolated, polynomial

_ROUNDER = 1.5 * 2.0**52
_ROUNDER_BITS = 0x4338000000000000
_STEPS = 16  # steps of the table per unit
_LAST = 6  # erf is 1 from here on
_TERMS = 10
_TERMS_OF_F32 = 5


@cache
def _near_zero(terms: int, end: Fraction = Fraction(2501, 10000)) -> tuple[float, ...]:
    """(erf(x) / x - 1) in x^2, for x^2 up to `end`."""
    series = [two_over_root_pi() * Fraction((-1) ** k, factorial(k) * (2 * k + 1)) for k in range(20)]
    series[0] -= 1
    return economised(series, Fraction(0), end, terms)


@cache
def _table() -> tuple[tuple[float, ...], ...]:
    """erf at each step in two parts, and its derivative there."""
    points = [Fraction(step, _STEPS) for step in range(_LAST * _STEPS + 1)]
    values = [parts(exact_erf(point), 2) for point in points]
    slopes = [float(two_over_root_pi() * exact_exp(-point * point)) for point in points]
    return tuple(value[0] for value in values), tuple(value[1] for value in values), tuple(slopes)


class _NearStep(NamedTuple):
    """erf at a step in two parts, and the increment from there to the argument."""

    high: Term
    low: Term
    more: Term


def _about_step(size: Term, terms: int) -> _NearStep:
    """erf by the series around the nearest step c.

    The derivative at c + h is that at c times e^(-2ch - h^2), whose coefficients b_k in powers of h have the recurrence
    b_(k+1) = -2 (c b_k + b_(k-1)) / (k + 1).
    """
    bounded = (size > float(_LAST)).where(float(_LAST), size)
    shifted = bounded * float(_STEPS) + _ROUNDER
    c = (shifted - _ROUNDER) * (1.0 / _STEPS)
    h = bounded - c
    row = (shifted.bits - _ROUNDER_BITS) & 127
    row = (row > _LAST * _STEPS).where(_LAST * _STEPS, row)
    high, low, slope = (row.lookup(column) for column in _table())
    before, current = size.like(0.0), size.like(1.0)
    coefficients = [current]
    for k in range(terms):
        before, current = current, (c * current + before) * (-2.0 / (k + 1))
        coefficients.append(current)
    integral = coefficients[-1] * (1.0 / (terms + 1))
    for k in range(terms - 1, -1, -1):
        integral = integral * h + coefficients[k] * (1.0 / (k + 1))
    return _NearStep(high, low, slope * h * integral)


def erf(x: Term) -> Term:
    size = abs(x)
    small = size + size * polynomial(_near_zero(10), size * size)
    step = _about_step(size, _TERMS)
    start = sum_of_larger(step.high, step.more)
    large = start.high + (start.low + step.low)
    return (size < 0.5).where(small, large).with_sign_of(x)


def single_erf(x: Term) -> Term:
    """erf of an f32, computed in f64 with fewer terms."""
    wide = x.to(f64)
    size = abs(wide)
    small = size + size * polynomial(_near_zero(6), size * size)
    step = _about_step(size, _TERMS_OF_F32)
    return (size < 0.5).where(small, step.high + step.more).with_sign_of(wide).to(f32)


@cache
def _far_from_zero() -> tuple[float, ...]:
    """e^(x^2) (1 - erf(x)) from 1 to 4, by interpolation."""
    nodes = [Fraction(5, 2) + Fraction(3, 2) * Fraction(cos((2 * k + 1) * pi / 20)) for k in range(10)]
    values = [(1 - exact_erf(node)) / exact_exp(-node * node) for node in nodes]
    return tuple(float(c) for c in interpolated(nodes, values))


def fast_erf(x: Term) -> Term:
    """erf of an f32, in f32 without a table."""
    size = abs(x)
    near = size.times_plus(fused_polynomial(_near_zero(7, Fraction(1)), size * size), size)
    bounded = (size > 4.0).where(4.0, size)
    far = (-grown(-(bounded * bounded))).times_plus(fused_polynomial(_far_from_zero(), bounded), 1.0)
    return (size < 1.0).where(near, far).with_sign_of(x)
