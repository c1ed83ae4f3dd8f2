"""Exponentials, logarithms and related functions of an f32 or f64 Term at up to 4 ULP, in its own type.

Unlike the exact functions they do not compensate rounding errors or go through f64. Infinities, nan, denormals and
signed zeros are handled the same.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import factorial
from typing import NamedTuple

from tirlite.ir.dtype import DType, f32, f64
from tirlite.ir.formula import Term, clamped
from tirlite.ir.functions import coefficients
from tirlite.ir.functions.constants import ln2, ln10, parts
from tirlite.ir.functions.logarithm import at_edges
from tirlite.ir.functions.series import economised, fused_polynomial


class Format(NamedTuple):
    """The parameters of a type for the formulas."""

    dtype: DType
    digits: int  # explicit bits of the significand
    bias: int
    rounder: float  # adding it to a small enough number leaves the nearest integer in the low bits
    rounder_bits: int
    short: int  # digits of a constant whose product with an exponent is exact
    root_of_half: int  # the bits of the square root of 1/2
    exponential: int  # terms of polynomials
    logarithm: int
    odd: int
    below: float  # below this, exp rounds to 0
    above: float  # above this, exp overflows

    def power_of_two(self, n: Term) -> Term:
        """2^n, if that is a normal number."""
        return ((n + self.bias) << self.digits).as_type(self.dtype)


_F32 = Format(f32, 23, 127, 1.5 * 2.0**23, 0x4B400000, 15, 0x3F3504F3, 5, 4, 4, -105.0, 90.0)
_F64 = Format(f64, 52, 1023, 1.5 * 2.0**52, 0x4338000000000000, 40, 0x3FE6A09E667F3BCD, 11, 8, 8, -750.0, 720.0)


def format_of(x: Term) -> Format:
    return _F32 if x.dtype == f32 else _F64


@cache
def _hyperbolic(terms: int) -> tuple[float, ...]:
    """(sinh(x) - x) / x^3 in x^2, up to 1."""
    return economised([Fraction(1, factorial(2 * k + 3)) for k in range(14)], Fraction(0), Fraction(1), terms)


class _Grown(NamedTuple):
    """e^x as `2^n (1 + more)`."""

    n: Term
    more: Term


def _grown(x: Term) -> _Grown:
    """e^x for arguments without overflow."""
    form = format_of(x)
    first, second = parts(ln2(), 2, form.short)
    shifted = x.times_plus(float(1 / ln2()), form.rounder)
    count = shifted - form.rounder
    r = count.times_plus(-second, count.times_plus(-first, x))
    more = (r * r).times_plus(fused_polynomial(coefficients.exponential(form.exponential), r), r)
    return _Grown(shifted.bits - form.rounder_bits, more)


def _scaled(value: Term, n: Term) -> Term:
    """`value * 2^n`, rounded once if the result is denormal."""
    form, half = format_of(value), n >> 1
    return value * form.power_of_two(half) * form.power_of_two(n - half)


def exp2(x: Term) -> Term:
    form = format_of(x)
    x = clamped(x, form.below * 1.45, form.above * 1.45)
    shifted = x + form.rounder
    r = (x - (shifted - form.rounder)) * float(ln2())
    more = (r * r).times_plus(fused_polynomial(coefficients.exponential(form.exponential), r), r)
    return _scaled(1.0 + more, shifted.bits - form.rounder_bits)


def expm1(x: Term) -> Term:
    form = format_of(x)
    e = _grown(clamped(x, -45.0, form.above))
    half = e.n >> 1
    rest = e.n - half
    power = form.power_of_two(half)
    less = power - form.power_of_two(half - e.n)
    return x.equals(0.0).where(x, power.times_plus(e.more, less) * form.power_of_two(rest))


def _half_of_exp(size: Term) -> Term:
    """e^x / 2 for nonnegative x."""
    e = _grown(clamped(size, -1.0, format_of(size).above))
    return _scaled(1.0 + e.more, e.n - 1)


def sinh(x: Term) -> Term:
    size, z = abs(x), x * x
    half = _half_of_exp(size)
    near = (x * z).times_plus(fused_polynomial(_hyperbolic(format_of(x).odd), z), x)
    far = half - 0.25 / half
    return (size < 1.0).where(near, (x < 0.0).where(-far, far))


def cosh(x: Term) -> Term:
    half = _half_of_exp(abs(x))
    return half + 0.25 / half


def tanh(x: Term) -> Term:
    form, size = format_of(x), abs(x)
    e = _grown(2.0 * (size > 20.0).where(20.0, size))
    power = form.power_of_two(e.n)
    less = power.times_plus(e.more, power - 1.0)
    result = less / (less + 2.0)
    return x.equals(0.0).where(x, (x < 0.0).where(-result, result))


def sigmoid(x: Term) -> Term:
    e = _grown(-clamped(abs(x), -1.0, -format_of(x).below))
    small = _scaled(1.0 + e.more, e.n)
    return (x < 0.0).where(small, 1.0) / (1.0 + small)


class _Parted(NamedTuple):
    """The logarithm of a positive number, as `k ln 2 + rest`."""

    k: Term
    rest: Term


def _parted(x: Term, *, tiny: bool = True) -> _Parted:
    form = format_of(x)
    up = form.digits + 1
    is_tiny = x < 2.0 ** (1 - form.bias)
    bits = (is_tiny.where(x * 2.0**up, x) if tiny else x).bits
    exponent = (bits - form.root_of_half) >> form.digits
    f = (bits - (exponent << form.digits)).as_type(form.dtype) - 1.0
    s = f / (f + 2.0)
    z = s * s
    k = (exponent + form.rounder_bits).as_type(form.dtype) - form.rounder
    if tiny:
        k = is_tiny.where(k - float(up), k)
    # Write 2 s as f - s f, so that f, which is exact, is added last.
    return _Parted(
        k, (-s).times_plus((-z).times_plus(fused_polynomial(coefficients.logarithm(1, form.logarithm), z), f), f)
    )


def _sum(x: _Parted, k: Fraction, rest: Fraction) -> Term:
    """The logarithm in another base: `k` and `rest` are the factors of its two terms."""
    first, second = parts(k, 2, format_of(x.k).short)
    scaled = x.rest if rest == 1 else x.rest * float(rest)
    return x.k.times_plus(first, x.k.times_plus(second, scaled) if second else scaled)


def log(x: Term) -> Term:
    return at_edges(x, _sum(_parted(x), ln2(), Fraction(1)))


def log2(x: Term) -> Term:
    return at_edges(x, _sum(_parted(x), Fraction(1), 1 / ln2()))


def log10(x: Term) -> Term:
    return at_edges(x, _sum(_parted(x), ln2() / ln10(), 1 / ln10()))


def log1p(x: Term) -> Term:
    above = 1.0 + x
    missing = (x - (above - 1.0)) / above
    result = _sum(_parted(above, tiny=False), ln2(), Fraction(1)) + missing
    return (abs(x) < 2.0**-60).where(x, at_edges(above, result))


def rsqrt(x: Term) -> Term:
    return 1.0 / x.sqrt()
