"""sin, cos, tan and their inverses of an f32 Term, computed in f64.

Source of the reduction: M. Payne, R. Hanek, Radian reduction for trigonometric functions, 1983.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from tirlite.ir.dtype import f64
from tirlite.ir.formula import Term
from tirlite.ir.functions import coefficients
from tirlite.ir.functions.angles import Angle, Angles
from tirlite.ir.functions.constants import pi
from tirlite.ir.functions.series import polynomial

_ROUNDER = 1.5 * 2.0**52
_ROWS = 112  # an f32 is an integer times a power of two up to 2^104
_DIGITS_OF_F32 = 24


@cache
def _table() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """For each row, 2 / pi times a power of two, modulo 4: 29 digits, and the next 53."""
    highs, lows = [], []
    for row in range(_ROWS):
        value = (2 / pi()) * 2**row % 4
        high = Fraction(int(value * 2**27), 2**27)
        highs.append(float(high))
        lows.append(float(value - high))
    return tuple(highs), tuple(lows)


def _reduced(x: Term) -> Angle:
    """Reduces to at most pi / 4, with an error of 2^-54; no f32 but 0 is within 2^-30 of a multiple of pi / 2."""
    wide = x.to(f64)
    exponent = ((wide.bits >> 52) & 0x7FF) - (1022 + _DIGITS_OF_F32)
    row = (exponent > 0).where(exponent, 0)
    row = (row > _ROWS - 1).where(_ROWS - 1, row)
    # From 2^24 on, `scaled` is an integer, so the multiples of 4 that the table omits do not matter.
    scaled = wide * ((1023 - row) << 52).as_type(f64)
    high, low = (row.lookup(column) for column in _table())
    turns = scaled * high  # exact: 24 digits times 29
    left = turns - 4.0 * (0.25 * turns).round()
    rest = scaled * low
    shifted = (left + rest) + _ROUNDER
    y = ((left - (shifted - _ROUNDER)) + rest) * float(pi() / 2)
    z = y * y
    sine = y + y * z * polynomial(coefficients.sine(4), z)
    return Angle(shifted.bits, sine, polynomial(coefficients.cosine(6, skipped=0), z))


sin, cos, tan, asin, acos, atan, atan2 = Angles(_reduced, lambda x: (f64, 7)).functions
