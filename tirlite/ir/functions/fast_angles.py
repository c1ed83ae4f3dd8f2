"""Computes trigonometric functions and their inverses at up to 4 ULP, of a Term of f32 or f64, as one of its type.

sin, cos and tan are right for arguments up to `LARGEST` in size, and take larger ones for 0: reducing those exactly is
most of what the exact functions do. Source of the reduction: W. J. Cody, W. Waite, Software manual for the elementary
functions, 1980.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import comb, factorial, inf, nan
from typing import NamedTuple

from tirlite.ir.dtype import f32, f64, i32
from tirlite.ir.formula import Term
from tirlite.ir.functions.constants import parts, pi
from tirlite.ir.functions.series import economised, fused_polynomial

LARGEST = 1e8
_ROUNDER = 1.5 * 2.0**52
_END = Fraction(62, 100)  # (pi / 4)^2, and some more
_TAN_OF_EIGHTH = 0.4142135623730951
_TAN_OF_THREE_EIGHTHS = 2.414213562373095


class _Terms(NamedTuple):
    """How many of the terms of each series a type needs, and the places of its sign."""

    sine: int
    arctangent: int
    arcsine: int
    sign: int


_OF_F32 = _Terms(3, 5, 5, 31)
_OF_F64 = _Terms(7, 14, 14, 63)


def _terms(x: Term) -> _Terms:
    return _OF_F32 if x.dtype == f32 else _OF_F64


@cache
def _sine(terms: int) -> tuple[float, ...]:
    """(sin(y) - y) / y^3 in y^2."""
    return economised([Fraction((-1) ** (k + 1), factorial(2 * k + 3)) for k in range(16)], Fraction(0), _END, terms)


@cache
def _cosine(terms: int) -> tuple[float, ...]:
    """(cos(y) - 1 + y^2 / 2) / y^4 in y^2."""
    return economised([Fraction((-1) ** k, factorial(2 * k + 4)) for k in range(16)], Fraction(0), _END, terms)


@cache
def _arctangent(terms: int) -> tuple[float, ...]:
    """(atan(t) - t) / t^3 in t^2, up to tan(pi / 8)."""
    series = [Fraction((-1) ** (k + 1), 2 * k + 3) for k in range(50)]
    return economised(series, Fraction(0), Fraction(172, 1000), terms)


@cache
def _arcsine(terms: int) -> tuple[float, ...]:
    """(asin(x) - x) / x^3 in x^2, up to 1/4."""
    series = [Fraction(comb(2 * k, k), 4**k * (2 * k + 1)) for k in range(1, 40)]
    return economised(series, Fraction(0), Fraction(1, 4), terms)


class _Angle(NamedTuple):
    """An argument as `quadrant * pi / 2 + rest`."""

    quadrant: Term
    rest: Term


def _reduced(x: Term) -> _Angle:
    """The rest of an f32 comes from f64, where two parts of pi / 2 are enough; that of an f64 from four."""
    wide = x.to(f64)
    wide = (abs(wide) <= LARGEST).where(wide, wide - wide)
    shifted = wide * float(2 / pi()) + _ROUNDER
    count = shifted - _ROUNDER
    rest = wide
    for part in parts(pi() / 2, 2 if x.dtype == f32 else 4, 26):
        rest = rest - count * part
    quadrant = shifted.bits
    return _Angle(quadrant.to(i32) if x.dtype == f32 else quadrant, rest.to(x.dtype))


def _sin_of(y: Term, z: Term) -> Term:
    return (y * z).times_plus(fused_polynomial(_sine(_terms(y).sine), z), y)


def _cos_of(z: Term) -> Term:
    return 1.0 - (z * z).times_plus(-fused_polynomial(_cosine(_terms(z).sine), z), 0.5 * z)


def _turned(x: Term, turn: int) -> Term:
    """sin(x + turn * pi / 2)."""
    angle = _reduced(x)
    z = angle.rest * angle.rest
    quadrant = angle.quadrant + turn
    result = (quadrant & 1).equals(0).where(_sin_of(angle.rest, z), _cos_of(z))
    return (result.bits ^ ((quadrant & 2) << (_terms(x).sign - 1))).as_type(x.dtype)


def sin(x: Term) -> Term:
    return x.equals(0.0).where(x, _turned(x, 0))


def cos(x: Term) -> Term:
    return _turned(x, 1)


def tan(x: Term) -> Term:
    angle = _reduced(x)
    z = angle.rest * angle.rest
    sine, cosine = _sin_of(angle.rest, z), _cos_of(z)
    is_even = (angle.quadrant & 1).equals(0)
    result = is_even.where(sine, -cosine) / is_even.where(cosine, sine)
    return x.equals(0.0).where(x, result)


def _angle_of(height: Term, width: Term) -> Term:
    """The angle of a point neither of whose coordinates is negative."""
    is_steep = height > width * _TAN_OF_THREE_EIGHTHS
    is_middle = (height > width * _TAN_OF_EIGHTH) ^ is_steep
    above = is_steep.where(-width, is_middle.where(height - width, height))
    below = is_steep.where(height, is_middle.where(height + width, width))
    t = above / below
    z = t * t
    half = float(pi() / 2)
    start = is_steep.where(t.like(half), is_middle.where(t.like(half / 2), 0.0))
    return start + (t * z).times_plus(fused_polynomial(_arctangent(_terms(t).arctangent), z), t)


def _with_sign(size: Term, x: Term) -> Term:
    """A number that is not negative, with the sign of `x`."""
    return (size.bits | (x.bits & -(1 << _terms(x).sign))).as_type(x.dtype)


def atan(x: Term) -> Term:
    size = abs(x)
    return _with_sign(_angle_of(size, size.like(1.0)), x)


def atan2(y: Term, x: Term) -> Term:
    """The angle of the point (x, y), brought to a size where neither sums nor products overflow or lose digits."""
    height, width = abs(y), abs(x)
    size = (height > width).where(height, width)
    least = _least_safe(x)
    up = (size > 1.0 / least).where(size.like(2.0**-4), (size < least).where(size.like(2.0**60), 1.0))
    # Infinities count as equal, and 0 beside 0 as flat.
    both = height.equals(inf) & width.equals(inf)
    height, width = both.where(1.0, height * up), both.where(1.0, width * up)
    width = (height.equals(0.0) & width.equals(0.0)).where(1.0, width)
    angle = _angle_of(height, width)
    angle = (x.bits < 0).where(float(pi()) - angle, angle)
    return (x.differs(x) | y.differs(y)).where(nan, _with_sign(angle, y))


def _least_safe(x: Term) -> float:
    return 2.0**-60 if x.dtype == f32 else 2.0**-960


def asin(x: Term) -> Term:
    size = abs(x)
    is_large = size > 0.5
    z = is_large.where(0.5 * (1.0 - size), size * size)
    root = is_large.where(z.sqrt(), size)
    part = (root * z).times_plus(fused_polynomial(_arcsine(_terms(x).arcsine), z), root)
    result = is_large.where(float(pi() / 2) - 2.0 * part, part)
    return (size <= 1.0).where(_with_sign(result, x), nan)


def acos(x: Term) -> Term:
    size = abs(x)
    is_large = size > 0.5
    z = is_large.where(0.5 * (1.0 - size), size * size)
    root = is_large.where(z.sqrt(), x)
    part = (root * z).times_plus(fused_polynomial(_arcsine(_terms(x).arcsine), z), root)
    near_end = (x < 0.0).where(float(pi()) - 2.0 * part, 2.0 * part)
    return (size <= 1.0).where(is_large.where(near_end, float(pi() / 2) - part), nan)
