"""exp, tanh and sigmoid of an f32 Term at up to 4 ULP, in few operations, as networks spend much time in them."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import factorial

from tirlite.ir.dtype import f32
from tirlite.ir.formula import Term, clamped
from tirlite.ir.functions.constants import ln2, parts
from tirlite.ir.functions.series import economised, fused_polynomial

_DIGITS = 23
# Adding this leaves the nearest integer plus the exponent bias in the low bits.
_ROUNDER = 1.5 * 2.0**_DIGITS + 127


@cache
def _exponential() -> tuple[float, ...]:
    """(e^r - 1) / r, for |r| up to ln 2."""
    end = Fraction(694, 1000)
    return economised([Fraction(1, factorial(k + 1)) for k in range(20)], -end, end, 7)


@cache
def _half_of_growth() -> tuple[float, ...]:
    """(e^2r - 1 - 2 r) / 2 r^2, for |2r| up to ln 2 / 2."""
    end = Fraction(174, 1000)
    return economised([Fraction(2 ** (k + 1), factorial(k + 2)) for k in range(16)], -end, end, 5)


def _power_of_two(shifted: Term) -> Term:
    """The power of two in a shifted sum; the shift drops all of the rounder's bits but the exponent."""
    return (shifted.bits << _DIGITS).as_type(f32)


def grown(x: Term) -> Term:
    """e^x for -110 <= x <= 90, as `2^k e^r 2^k`: only the last product may round, for a denormal result."""
    shifted = x.times_plus(float(1 / (2 * ln2())), _ROUNDER)
    count = shifted - _ROUNDER
    first, second = parts(2 * ln2(), 2, 15)
    r = count.times_plus(-second, count.times_plus(-first, x))
    power = _power_of_two(shifted)
    return fused_polynomial((1.0, *_exponential()), r) * power * power


def exp(x: Term) -> Term:
    return grown(clamped(x, -105.0, 90.0))


def sigmoid(x: Term) -> Term:
    """e^-|x| / (1 + e^-|x|) below 0, else 1 / (1 + e^-|x|)."""
    size = abs(x)
    small = grown(-(size > 105.0).where(105.0, size))
    return (x < 0.0).where(small, 1.0) / (1.0 + small)


def tanh(x: Term) -> Term:
    """h / (h + 1), with h = (e^2|x| - 1) / 2. The error of ln 2 as one constant is negligible."""
    size = abs(x)
    bounded = (size > 20.0).where(20.0, size)
    shifted = bounded.times_plus(float(2 / ln2()), _ROUNDER)
    count = shifted - _ROUNDER
    r = count.times_plus(-float(ln2() / 2), bounded)
    power = _power_of_two(shifted)
    more = (r * r).times_plus(fused_polynomial(_half_of_growth(), r), r)
    half = power.times_plus(more, power.times_plus(0.5, -0.5))
    return (half / (half + 1.0)).with_sign_of(x)
