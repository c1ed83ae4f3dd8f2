"""Computes exp, tanh and sigmoid of an f32 Term at up to 4 ULP, in as few operations as networks spend most time in."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import factorial

from tirlite.ir.dtype import f32
from tirlite.ir.formula import Term, clamped
from tirlite.ir.functions.constants import ln2, parts
from tirlite.ir.functions.series import economised, fused_polynomial

_DIGITS = 23
# Leaves the nearest integer and the bias of exponents in the last digits of a sum.
_ROUNDER = 1.5 * 2.0**_DIGITS + 127


@cache
def _exponential() -> tuple[float, ...]:
    """(e^r - 1) / r, up to a doubling either way."""
    end = Fraction(694, 1000)
    return economised([Fraction(1, factorial(k + 1)) for k in range(20)], -end, end, 7)


@cache
def _half_of_growth() -> tuple[float, ...]:
    """(e^2r - 1 - 2 r) / 2 r^2, up to half a doubling of e^2r either way."""
    end = Fraction(174, 1000)
    return economised([Fraction(2 ** (k + 1), factorial(k + 2)) for k in range(16)], -end, end, 5)


def _power_of_two(shifted: Term) -> Term:
    """All digits of the rounder but those of the exponent leave by the shift."""
    return (shifted.bits << _DIGITS).as_type(f32)


def grown(x: Term) -> Term:
    """e^x of an x from -110 to 90, as `2^k e^r 2^k`: only the last product may round, where it is a denormal number."""
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
    """h / (h + 1), where h is (e^2|x| - 1) / 2. What one constant lacks of ln 2 is too little to be seen."""
    size = abs(x)
    bounded = (size > 20.0).where(20.0, size)
    shifted = bounded.times_plus(float(2 / ln2()), _ROUNDER)
    count = shifted - _ROUNDER
    r = count.times_plus(-float(ln2() / 2), bounded)
    power = _power_of_two(shifted)
    more = (r * r).times_plus(fused_polynomial(_half_of_growth(), r), r)
    half = power.times_plus(more, power.times_plus(0.5, -0.5))
    return (half / (half + 1.0)).with_sign_of(x)
