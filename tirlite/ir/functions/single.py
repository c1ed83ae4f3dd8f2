"""The common functions for f32: shorter than those for f64, without compensation of errors.

All but exp compute in f64, whose precision makes plain arithmetic sufficient.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from tirlite.ir.dtype import f32, f64
from tirlite.ir.formula import Term, clamped
from tirlite.ir.functions import coefficients
from tirlite.ir.functions.constants import ln2, ln10, parts
from tirlite.ir.functions.logarithm import at_edges, power_at_edges
from tirlite.ir.functions.series import polynomial

_ROUNDER_OF_F32 = 1.5 * 2.0**23
_BITS_OF_F32 = 0x4B400000  # its bits
_ROUNDER = 1.5 * 2.0**52
_BITS = 0x4338000000000000
_ROOT_OF_HALF = 0x3FE6A09E667F3BCD


def exp(x: Term) -> Term:
    x = clamped(x, -110.0, 90.0)
    shifted = x * float(1 / ln2()) + _ROUNDER_OF_F32
    count = shifted - _ROUNDER_OF_F32
    first, second = parts(ln2(), 2, 15)
    a, b = x - count * first, count * second
    r = a - b
    result = 1.0 + (r + (r * r * polynomial(coefficients.exponential(5), r) + ((a - r) - b)))
    n = shifted.bits - _BITS_OF_F32
    half = n >> 1
    return result * _power_of_two(half) * _power_of_two(n - half)


def _power_of_two(n: Term) -> Term:
    return ((n + 127) << 23).as_type(f32)


class _Grown(NamedTuple):
    """e^x as `power * (1 + more)`, for an f64."""

    power: Term
    more: Term

    @property
    def value(self) -> Term:
        return self.power * self.more + self.power

    @property
    def less_one(self) -> Term:
        return (self.power - 1.0) + self.power * self.more


def _grown(x: Term) -> _Grown:
    """e^x to about 2^-38, for an f64 at most 700 in size; `more` has the same relative precision."""
    shifted = x * float(1 / ln2()) + _ROUNDER
    return _of_count(shifted, x - (shifted - _ROUNDER) * float(ln2()))


def _of_count(shifted: Term, r: Term) -> _Grown:
    """2^n e^r; `shifted` is n plus the rounder."""
    power = (((shifted.bits - _BITS) + 1023) << 52).as_type(f64)
    return _Grown(power, r + r * r * polynomial(coefficients.exponential(7), r))


def exp2(x: Term) -> Term:
    wide = clamped(x.to(f64), -160.0, 140.0)
    shifted = wide + _ROUNDER
    return _of_count(shifted, (wide - (shifted - _ROUNDER)) * float(ln2())).value.to(f32)


def expm1(x: Term) -> Term:
    return x.equals(0.0).where(x, _grown(clamped(x.to(f64), -60.0, 100.0)).less_one.to(f32))


def sinh(x: Term) -> Term:
    wide = x.to(f64)
    e = _grown(clamped(abs(wide), -1.0, 100.0)).less_one
    size = (0.5 * (e + e / (e + 1.0))).to(f32)
    return x.equals(0.0).where(x, (x < 0.0).where(-size, size))


def cosh(x: Term) -> Term:
    e = _grown(clamped(x.to(f64), -100.0, 100.0)).value
    return (0.5 * (e + 1.0 / e)).to(f32)


def tanh(x: Term) -> Term:
    e = _grown(2.0 * clamped(x.to(f64), -20.0, 20.0)).less_one
    return x.equals(0.0).where(x, (e / (e + 2.0)).to(f32))


def sigmoid(x: Term) -> Term:
    e = _grown(-clamped(x.to(f64), -200.0, 200.0)).value
    return (1.0 / (1.0 + e)).to(f32)


def log(x: Term) -> Term:
    return at_edges(x, _logarithm(x.to(f64)).to(f32))


def log2(x: Term) -> Term:
    return at_edges(x, _logarithm(x.to(f64), float(1 / ln2())).to(f32))


def log10(x: Term) -> Term:
    return at_edges(x, _logarithm(x.to(f64), float(1 / ln10())).to(f32))


def log1p(x: Term) -> Term:
    wide = x.to(f64)
    above = wide + 1.0
    # Add the rounding error of the sum, which matters near 1, where the logarithm has the slope 1.
    result = _logarithm(above) + (wide - (above - 1.0))
    return x.equals(0.0).where(x, at_edges(above.to(f32), result.to(f32)))


def power(x: Term, y: Term) -> Term:
    size = abs(x).to(f64)
    logarithm = at_edges(size, _logarithm(size))
    result = _grown(clamped(y.to(f64) * logarithm, -200.0, 200.0)).value
    return power_at_edges(x, y, result.to(f32))


def rsqrt(x: Term) -> Term:
    """1 / sqrt(x), corrected by its error in f64, where squares of f32 are exact."""
    near = 1.0 / x.sqrt()
    wide, start = x.to(f64), near.to(f64)
    better = (start + start * (0.5 - 0.5 * (wide * start) * start)).to(f32)
    return ((x > 0.0) & (x < inf)).where(better, near)


def _logarithm(x: Term, unit: float = 1.0) -> Term:
    """`unit` times the natural logarithm of a positive normal f64."""
    bits = x.bits
    exponent = (bits - _ROOT_OF_HALF) >> 52
    f = (bits - (exponent << 52)).as_type(f64) - 1.0
    s = f / (f + 2.0)
    k = (exponent + _BITS).as_type(f64) - _ROUNDER
    return k * (unit * float(ln2())) + s * unit * polynomial(coefficients.logarithm(0, 6), s * s)
