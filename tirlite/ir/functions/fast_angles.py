"""Computes trigonometric functions and their inverses at up to 4 ULP, of a Term of f32 or f64, as one of its type.

sin, cos and tan are right for arguments up to `LARGEST` in size, and take larger ones for 0: reducing those exactly is
most of what the exact functions do. Source of the reduction: W. J. Cody, W. Waite, Software manual for the elementary
functions, 1980.
"""

from __future__ import annotations

from math import inf, nan
from typing import NamedTuple

from tirlite.ir.dtype import f32, f64, i32
from tirlite.ir.formula import Term
from tirlite.ir.functions import coefficients
from tirlite.ir.functions.constants import parts, pi
from tirlite.ir.functions.series import fused_polynomial
from tirlite.ir.functions.single_angles import angle_of, arccosine_of, arcsine_of

LARGEST = 1e8
_ROUNDER = 1.5 * 2.0**52


class _Terms(NamedTuple):
    """How many of the terms of each series a type needs."""

    sine: int
    arctangent: int
    arcsine: int


_OF_F32 = _Terms(3, 5, 5)
_OF_F64 = _Terms(7, 14, 14)


def _terms(x: Term) -> _Terms:
    return _OF_F32 if x.dtype == f32 else _OF_F64


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
    return (y * z).times_plus(fused_polynomial(coefficients.sine(_terms(y).sine), z), y)


def _cos_of(z: Term) -> Term:
    return 1.0 - (z * z).times_plus(-fused_polynomial(coefficients.cosine(_terms(z).sine), z), 0.5 * z)


def _sine_ahead(x: Term, turn: int) -> Term:
    """sin(x + turn * pi / 2)."""
    angle = _reduced(x)
    z = angle.rest * angle.rest
    quadrant = angle.quadrant + turn
    result = (quadrant & 1).equals(0).where(_sin_of(angle.rest, z), _cos_of(z))
    return (result.bits ^ ((quadrant & 2) << (x.dtype.bits - 2))).as_type(x.dtype)


def sin(x: Term) -> Term:
    return x.equals(0.0).where(x, _sine_ahead(x, 0))


def cos(x: Term) -> Term:
    return _sine_ahead(x, 1)


def tan(x: Term) -> Term:
    angle = _reduced(x)
    z = angle.rest * angle.rest
    sine, cosine = _sin_of(angle.rest, z), _cos_of(z)
    is_even = (angle.quadrant & 1).equals(0)
    result = is_even.where(sine, -cosine) / is_even.where(cosine, sine)
    return x.equals(0.0).where(x, result)


def atan(x: Term) -> Term:
    size = abs(x)
    return angle_of(size, size.like(1.0), _terms(x).arctangent).with_sign_of(x)


def atan2(y: Term, x: Term) -> Term:
    """The angle of the point (x, y), brought to a size where neither sums nor products overflow or lose digits."""
    height, width = abs(y), abs(x)
    size = (height > width).where(height, width)
    least = 2.0**-60 if x.dtype == f32 else 2.0**-960
    up = (size > 1.0 / least).where(size.like(2.0**-4), (size < least).where(size.like(2.0**60), 1.0))
    # Infinities count as equal, and 0 beside 0 as flat.
    both = height.equals(inf) & width.equals(inf)
    height, width = both.where(1.0, height * up), both.where(1.0, width * up)
    width = (height.equals(0.0) & width.equals(0.0)).where(1.0, width)
    angle = angle_of(height, width, _terms(x).arctangent)
    angle = (x.bits < 0).where(float(pi()) - angle, angle)
    return (x.differs(x) | y.differs(y)).where(nan, angle.with_sign_of(y))


def asin(x: Term) -> Term:
    size = abs(x)
    return (size <= 1.0).where(arcsine_of(size, _terms(x).arcsine).with_sign_of(x), nan)


def acos(x: Term) -> Term:
    return arccosine_of(x, _terms(x).arcsine)
