"""Computes sin, cos, tan and their inverses of an f32 Term, as an f32 Term, for f32 alone; all is computed in f64.

Source of the reduction: M. Payne, R. Hanek, Radian reduction for trigonometric functions, 1983.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import inf, nan
from typing import NamedTuple

from tirlite.ir.dtype import f32, f64
from tirlite.ir.formula import Term
from tirlite.ir.functions import coefficients
from tirlite.ir.functions.coefficients import arcsine, arctangent
from tirlite.ir.functions.constants import pi
from tirlite.ir.functions.series import fused_polynomial, polynomial

_ROUNDER = 1.5 * 2.0**52
_HALF_PI = float(pi() / 2)
_ROWS = 112  # an f32 is an integer times a power of two up to 2^104
_DIGITS_OF_F32 = 24
_TAN_OF_EIGHTH = 0.4142135623730951
_TAN_OF_THREE_EIGHTHS = 2.414213562373095


class _Angle(NamedTuple):
    """An argument as `quadrant * pi / 2 + rest`, where only the last two digits of the integer matter."""

    quadrant: Term
    rest: Term


@cache
def _table() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """For each row, 2 / pi times a power of two, less a multiple of 4: 29 digits, and the next 53."""
    highs, lows = [], []
    for row in range(_ROWS):
        value = (2 / pi()) * 2**row % 4
        high = Fraction(int(value * 2**27), 2**27)
        highs.append(float(high))
        lows.append(float(value - high))
    return tuple(highs), tuple(lows)


def _reduced(x: Term) -> _Angle:
    """The rest is at most pi / 4, and good to 2^-54; no f32 but 0 is nearer than 2^-30 to a multiple of pi / 2."""
    wide = x.to(f64)
    exponent = ((wide.bits >> 52) & 0x7FF) - (1022 + _DIGITS_OF_F32)
    row = (exponent > 0).where(exponent, 0)
    row = (row > _ROWS - 1).where(_ROWS - 1, row)
    # From 2^24 on, what is multiplied is an integer, so that the multiples of 4 that the table lacks are none.
    scaled = wide * ((1023 - row) << 52).as_type(f64)
    high, low = (row.lookup(column) for column in _table())
    turns = scaled * high  # exact: 24 digits times 29
    left = turns - 4.0 * (0.25 * turns).round()
    rest = scaled * low
    shifted = (left + rest) + _ROUNDER
    return _Angle(shifted.bits, ((left - (shifted - _ROUNDER)) + rest) * _HALF_PI)


def _sin_of(y: Term, z: Term) -> Term:
    return y + y * z * polynomial(coefficients.sine(4), z)


def _sine_ahead(x: Term, turn: int) -> Term:
    """sin(x + turn * pi / 2)."""
    angle = _reduced(x)
    z = angle.rest * angle.rest
    quadrant = angle.quadrant + turn
    result = (quadrant & 1).equals(0).where(_sin_of(angle.rest, z), polynomial(coefficients.cosine(6, skipped=0), z))
    return (result.bits ^ ((quadrant & 2) << 62)).as_type(f64).to(f32)


def sin(x: Term) -> Term:
    return x.equals(0.0).where(x, _sine_ahead(x, 0))


def cos(x: Term) -> Term:
    return _sine_ahead(x, 1)


def tan(x: Term) -> Term:
    angle = _reduced(x)
    z = angle.rest * angle.rest
    sine, cosine = _sin_of(angle.rest, z), polynomial(coefficients.cosine(6, skipped=0), z)
    is_even = (angle.quadrant & 1).equals(0)
    result = is_even.where(sine, -cosine) / is_even.where(cosine, sine)
    return x.equals(0.0).where(x, result.to(f32))


def atan(x: Term) -> Term:
    wide = abs(x).to(f64)
    return angle_of(wide, wide.like(1.0), 7).to(f32).with_sign_of(x)


def atan2(y: Term, x: Term) -> Term:
    """The angle of the point (x, y)."""
    height, width = abs(y).to(f64), abs(x).to(f64)
    # Infinities count as equal, and 0 beside 0 as flat.
    both = height.equals(inf) & width.equals(inf)
    height, width = both.where(1.0, height), both.where(1.0, width)
    width = (height.equals(0.0) & width.equals(0.0)).where(1.0, width)
    angle = angle_of(height, width, 7)
    angle = (x.to(f64).bits < 0).where(float(pi()) - angle, angle)
    result = angle.to(f32).with_sign_of(y)
    return (x.differs(x) | y.differs(y)).where(nan, result)


def asin(x: Term) -> Term:
    size = abs(x)
    return (size <= 1.0).where(arcsine_of(size.to(f64), 7).to(f32).with_sign_of(x), nan)


def acos(x: Term) -> Term:
    return arccosine_of(x.to(f64), 7).to(f32)


def angle_of(height: Term, width: Term, terms: int) -> Term:
    """The angle of a point neither of whose coordinates is negative."""
    is_steep = height > width * _TAN_OF_THREE_EIGHTHS
    is_middle = (height > width * _TAN_OF_EIGHTH) ^ is_steep
    above = is_steep.where(-width, is_middle.where(height - width, height))
    below = is_steep.where(height, is_middle.where(height + width, width))
    t = above / below
    z = t * t
    start = is_steep.where(_HALF_PI, is_middle.where(t.like(_HALF_PI / 2), 0.0))
    return start + (t * z).times_plus(fused_polynomial(arctangent(terms), z), t)


def arcsine_of(size: Term, terms: int) -> Term:
    """The arc sine of a number that is not negative, where it has one."""
    is_large = size > 0.5
    part = _half_of_arcsine(is_large, size, size, terms)
    return is_large.where(_HALF_PI - 2.0 * part, part)


def arccosine_of(x: Term, terms: int) -> Term:
    size = abs(x)
    is_large = size > 0.5
    part = _half_of_arcsine(is_large, size, x, terms)
    near_end = (x < 0.0).where(float(pi()) - 2.0 * part, 2.0 * part)
    return (size <= 1.0).where(is_large.where(near_end, _HALF_PI - part), nan)


def _half_of_arcsine(is_large: Term, size: Term, x: Term, terms: int) -> Term:
    """asin(x) up to 1/2, and beyond half of what it lacks of a right angle."""
    z = is_large.where(0.5 * (1.0 - size), size * size)
    root = is_large.where(z.sqrt(), x)
    return (root * z).times_plus(fused_polynomial(arcsine(terms), z), root)
