"""Computes sin, cos, tan and their inverses of an f32 Term, as an f32 Term, for f32 alone; all is computed in f64.

Source of the reduction: M. Payne, R. Hanek, Radian reduction for trigonometric functions, 1983.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import comb, factorial, inf, nan
from typing import NamedTuple

from tirlite.ir.dtype import f32, f64
from tirlite.ir.formula import Term
from tirlite.ir.functions.constants import pi
from tirlite.ir.functions.series import economised, polynomial

_ROUNDER = 1.5 * 2.0**52
_HALF_PI = float(pi() / 2)
_ROWS = 112  # an f32 is an integer times a power of two up to 2^104
_DIGITS_OF_F32 = 24
_END = Fraction(62, 100)  # (pi / 4)^2, and some more
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


@cache
def _sine() -> tuple[float, ...]:
    """(sin(y) - y) / y^3 in y^2."""
    return economised([Fraction((-1) ** (k + 1), factorial(2 * k + 3)) for k in range(16)], Fraction(0), _END, 4)


@cache
def _cosine() -> tuple[float, ...]:
    """cos(y) in y^2."""
    return economised([Fraction((-1) ** k, factorial(2 * k)) for k in range(16)], Fraction(0), _END, 6)


@cache
def _arctangent() -> tuple[float, ...]:
    """(atan(t) - t) / t^3 in t^2, up to tan(pi / 8)."""
    return economised([Fraction((-1) ** (k + 1), 2 * k + 3) for k in range(40)], Fraction(0), Fraction(172, 1000), 7)


@cache
def _arcsine() -> tuple[float, ...]:
    """(asin(x) - x) / x^3 in x^2, up to 1/4."""
    series = [Fraction(comb(2 * k, k), 4**k * (2 * k + 1)) for k in range(1, 40)]
    return economised(series, Fraction(0), Fraction(1, 4), 7)


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
    return y + y * z * polynomial(_sine(), z)


def _turned(x: Term, turn: int) -> Term:
    """sin(x + turn * pi / 2)."""
    angle = _reduced(x)
    z = angle.rest * angle.rest
    quadrant = angle.quadrant + turn
    result = (quadrant & 1).equals(0).where(_sin_of(angle.rest, z), polynomial(_cosine(), z))
    return (result.bits ^ ((quadrant & 2) << 62)).as_type(f64).to(f32)


def sin(x: Term) -> Term:
    return x.equals(0.0).where(x, _turned(x, 0))


def cos(x: Term) -> Term:
    return _turned(x, 1)


def tan(x: Term) -> Term:
    angle = _reduced(x)
    z = angle.rest * angle.rest
    sine, cosine = _sin_of(angle.rest, z), polynomial(_cosine(), z)
    is_even = (angle.quadrant & 1).equals(0)
    result = is_even.where(sine, -cosine) / is_even.where(cosine, sine)
    return x.equals(0.0).where(x, result.to(f32))


def _angle_of(height: Term, width: Term) -> Term:
    """The angle of a point neither of whose coordinates is negative."""
    is_steep = height > width * _TAN_OF_THREE_EIGHTHS
    is_middle = (height > width * _TAN_OF_EIGHTH) ^ is_steep
    above = is_steep.where(-width, is_middle.where(height - width, height))
    below = is_steep.where(height, is_middle.where(height + width, width))
    t = above / below
    z = t * t
    start = is_steep.where(_HALF_PI, is_middle.where(t.like(_HALF_PI / 2), 0.0))
    return start + (t + t * z * polynomial(_arctangent(), z))


def atan(x: Term) -> Term:
    wide = abs(x).to(f64)
    return _with_sign(_angle_of(wide, wide.like(1.0)).to(f32), x)


def atan2(y: Term, x: Term) -> Term:
    """The angle of the point (x, y)."""
    height, width = abs(y).to(f64), abs(x).to(f64)
    # Infinities count as equal, and 0 beside 0 as flat.
    both = height.equals(inf) & width.equals(inf)
    height, width = both.where(1.0, height), both.where(1.0, width)
    width = (height.equals(0.0) & width.equals(0.0)).where(1.0, width)
    angle = _angle_of(height, width)
    angle = (x.to(f64).bits < 0).where(float(pi()) - angle, angle)
    result = _with_sign(angle.to(f32), y)
    return (x.differs(x) | y.differs(y)).where(nan, result)


def _with_sign(size: Term, x: Term) -> Term:
    """A number that is not negative, with the sign of `x`."""
    return (size.bits | (x.bits & -(1 << 31))).as_type(f32)


def _near_zero(x: Term, z: Term) -> Term:
    """asin(x) up to 1/2, of x and its square."""
    return x + x * z * polynomial(_arcsine(), z)


def _half_of_rest(size: Term) -> Term:
    return 0.5 * (1.0 - size)


def asin(x: Term) -> Term:
    size = abs(x).to(f64)
    is_large = size > 0.5
    z = is_large.where(_half_of_rest(size), size * size)
    part = _near_zero(is_large.where(z.sqrt(), size), z)
    result = is_large.where(_HALF_PI - 2.0 * part, part).to(f32)
    return (abs(x) <= 1.0).where(_with_sign(result, x), nan)


def acos(x: Term) -> Term:
    wide = x.to(f64)
    size = abs(wide)
    is_large = size > 0.5
    z = is_large.where(_half_of_rest(size), size * size)
    part = _near_zero(is_large.where(z.sqrt(), wide), z)
    near_end = (wide < 0.0).where(float(pi()) - 2.0 * part, 2.0 * part)
    return (size <= 1.0).where(is_large.where(near_end, _HALF_PI - part).to(f32), nan)
