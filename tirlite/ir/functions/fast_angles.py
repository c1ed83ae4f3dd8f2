"""Trigonometric functions and their inverses at up to 4 ULP, of an f32 or f64 Term, in its own type.
sin, cos and tan are correct for arguments up to `LARGEST` in size, and treat larger ones as 0: reducing those exactly
is most of the exact functions' work. Source of the reduction: W. J. Cody, W. Waite, Software manual for the elementary
functions, 1980.
"""

from __future__ import annotations

from tirlite.ir.dtype import DType, f32, f64, i32
from tirlite.ir.formula import Term
from tirlite.ir.functions import coefficients
from tirlite.ir.functions.angles import Angle, Angles
from tirlite.ir.functions.constants import parts, pi
from tirlite.ir.functions.series import fused_polynomial

LARGEST = 1e8
_ROUNDER = 1.5 * 2.0**52


def _reduced(x: Term) -> Angle:
    """Reduces in f64 with two parts of pi / 2 for an f32, and four for an f64."""
    wide = x.to(f64)
    wide = (abs(wide) <= LARGEST).where(wide, wide - wide)
    shifted = wide * float(2 / pi()) + _ROUNDER
    count = shifted - _ROUNDER
    rest = wide
    for part in parts(pi() / 2, 2 if x.dtype == f32 else 4, 26):
        rest = rest - count * part
    quadrant = shifted.bits
    y, terms = rest.to(x.dtype), 3 if x.dtype == f32 else 7
    z = y * y
    sine = (y * z).times_plus(fused_polynomial(coefficients.sine(terms), z), y)
    cosine = 1.0 - (z * z).times_plus(-fused_polynomial(coefficients.cosine(terms), z), 0.5 * z)
    return Angle(quadrant.to(i32) if x.dtype == f32 else quadrant, sine, cosine)


def _series(x: Term) -> tuple[DType, int]:
    return x.dtype, 5 if x.dtype == f32 else 14


sin, cos, tan, asin, acos, atan, atan2 = Angles(_reduced, _series).functions
