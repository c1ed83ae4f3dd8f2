"""The functions that kernels of f32 use most, for f32 alone: shorter than those of f64, with nothing to make good for.

An f32 Term in, an f32 Term out. All but exp compute in f64, where plain arithmetic has digits enough.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import factorial, inf, nan

from tirlite.ir.dtype import f32, f64
from tirlite.ir.formula import Term
from tirlite.ir.functions.constants import ln2, parts
from tirlite.ir.functions.exponential import clamped
from tirlite.ir.functions.series import economised, polynomial

_ROUNDER_OF_F32 = 1.5 * 2.0**23
_BITS_OF_F32 = 0x4B400000  # of that
_ROUNDER = 1.5 * 2.0**52
_BITS = 0x4338000000000000
_ROOT_OF_HALF = 0x3FE6A09E667F3BCD


@cache
def _exponential(terms: int) -> tuple[float, ...]:
    """(e^r - 1 - r) / r^2 for |r| <= ln 2 / 2."""
    end = Fraction(347, 1000)
    return economised([Fraction(1, factorial(k + 2)) for k in range(16)], -end, end, terms)


@cache
def _arctangent() -> tuple[float, ...]:
    """2 atanh(s) / s in s^2, for s up to 3 - 2 sqrt(2)."""
    return economised([Fraction(2, 2 * k + 1) for k in range(16)], Fraction(0), Fraction(295, 10000), 6)


def exp(x: Term) -> Term:
    x = clamped(x, -110.0, 90.0)
    shifted = x * float(1 / ln2()) + _ROUNDER_OF_F32
    count = shifted - _ROUNDER_OF_F32
    first, second = parts(ln2(), 2, 15)
    a, b = x - count * first, count * second
    r = a - b
    result = 1.0 + (r + (r * r * polynomial(_exponential(5), r) + ((a - r) - b)))
    n = shifted.bits - _BITS_OF_F32
    half = n >> 1
    return result * _power_of_two(half) * _power_of_two(n - half)


def _power_of_two(n: Term) -> Term:
    return ((n + 127) << 23).as_type(f32)


def _exp_in_double(x: Term) -> Term:
    """e^x to about 2^-38, for an f64 at most 700 in size."""
    shifted = x * float(1 / ln2()) + _ROUNDER
    r = x - (shifted - _ROUNDER) * float(ln2())
    power = (((shifted.bits - _BITS) + 1023) << 52).as_type(f64)
    return (1.0 + (r + r * r * polynomial(_exponential(7), r))) * power


def tanh(x: Term) -> Term:
    wide = x.to(f64)
    e = _exp_in_double(2.0 * clamped(wide, -20.0, 20.0))
    result = (e - 1.0) / (e + 1.0)
    # Near zero the difference has no digits.
    near = wide - wide * wide * wide * (1.0 / 3)
    result = (abs(wide) < 2.0**-8).where(near, result).to(f32)
    return x.equals(0.0).where(x, result)


def sigmoid(x: Term) -> Term:
    wide = clamped(x.to(f64), -200.0, 200.0)
    return (1.0 / (1.0 + _exp_in_double(-wide))).to(f32)


def log(x: Term) -> Term:
    bits = x.to(f64).bits
    exponent = (bits - _ROOT_OF_HALF) >> 52
    f = (bits - (exponent << 52)).as_type(f64) - 1.0
    s = f / (f + 2.0)
    k = (exponent + _BITS).as_type(f64) - _ROUNDER
    result = (k * float(ln2()) + s * polynomial(_arctangent(), s * s)).to(f32)
    result = (x <= 0.0).where(x.equals(0.0).where(x.like(-inf), nan), result)
    return ((x < inf) | (x <= 0.0)).where(result, x - 0.0)
