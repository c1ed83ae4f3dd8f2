"""exp and related functions (exp2, expm1, sinh, cosh, tanh, sigmoid) of an f64 Term."""

from __future__ import annotations

from typing import NamedTuple

from tirlite.ir.dtype import f64, i64
from tirlite.ir.formula import Term, clamped
from tirlite.ir.functions import coefficients
from tirlite.ir.functions.constants import ln2, parts
from tirlite.ir.functions.pairs import Pair, add, choose, divide, product_of, scale, sum_of, sum_of_larger
from tirlite.ir.functions.series import polynomial

# Adding this to a number below 2^51 leaves the nearest integer in the low bits.
_ROUNDER = 1.5 * 2.0**52
_BIAS = 1023
_LARGE = 40.0  # e^-40 is negligible beside 1


class Reduced(NamedTuple):
    """An argument as `n * ln 2 + r`: the integer n, r, and e^r - 1 - r corrected for r's rounding error."""

    n: Term
    r: Term
    rest: Term


def reduced(high: Term, low: Term | None = None) -> Reduced:
    """The reduction of `high + low`, at most 2^11 in size."""
    first, second = parts(ln2(), 2, 40)
    shifted = high * float(1 / ln2()) + _ROUNDER
    count = shifted - _ROUNDER
    a = high - count * first
    b = count * second if low is None else count * second - low
    r = a - b
    missing = (a - r) - b
    rest = r * r * polynomial(coefficients.exponential(11), r) + (missing + missing * r)
    return Reduced(shifted.bits, r, rest)


def power_of_two(n: Term) -> Term:
    """2^n for the low bits of `n`; -1022 <= n <= 1023."""
    return ((n.to(i64) + _BIAS) << 52).as_type(f64)


def scaled(value: Term, n: Term) -> Term:
    """`value * 2^n`, rounded once, for |n| up to 2^11."""
    # Remove the rounder's bits above `n` before halving it.
    whole = n - _rounder_bits()
    half = whole >> 1
    return value * power_of_two(half) * power_of_two(whole - half)


def _rounder_bits() -> int:
    return 0x4338000000000000


def exp_pair(x: Reduced) -> Pair:
    """e^r."""
    first = sum_of_larger(1.0, x.r)
    return sum_of_larger(first.high, first.low + x.rest)


def exp(x: Term) -> Term:
    return exp_of(reduced(clamped(x, -760.0, 720.0)))


def exp_of(x: Reduced) -> Term:
    return scaled(1.0 + (x.r + x.rest), x.n)


def exp2(x: Term) -> Term:
    x = clamped(x, -1100.0, 1040.0)
    shifted = x + _ROUNDER
    fraction = x - (shifted - _ROUNDER)
    first, second = parts(ln2(), 2)
    r = product_of(fraction, fraction.like(first))
    missing = r.low + fraction * second
    rest = r.high * r.high * polynomial(coefficients.exponential(11), r.high) + (missing + missing * r.high)
    return exp_of(Reduced(shifted.bits, r.high, rest))


def expm1_pair(x: Term) -> Pair:
    """e^x - 1 for -60 <= x <= 700."""
    e = reduced(x)
    power = power_of_two(e.n - _rounder_bits())
    less = sum_of(power, power.like(-1.0))
    grown = sum_of(less.high, power * e.r)
    return sum_of_larger(grown.high, grown.low + (less.low + power * e.rest))


def expm1(x: Term) -> Term:
    near = expm1_pair(clamped(x, -60.0, 2 * _LARGE)).value
    result = (x > _LARGE).where(exp(x), near)
    return (abs(x) < 2.0**-54).where(x, result)


def sinh(x: Term) -> Term:
    size = abs(x)
    e = expm1_pair((size > _LARGE).where(_LARGE, size))
    one_more = sum_of(1.0, e.high)
    inverse = divide(e, sum_of_larger(one_more.high, one_more.low + e.low))
    near = scale(add(e, inverse), x.like(0.5)).value
    return _signed(x, (size > _LARGE).where(_half_of_exp(size), near))


def cosh(x: Term) -> Term:
    size = abs(x)
    small = reduced((size > _LARGE).where(_LARGE, size))
    e = scale(exp_pair(small), power_of_two(small.n - _rounder_bits()))
    inverse = divide(Pair(x.like(1.0), x.like(0.0)), e)
    near = scale(add(e, inverse), x.like(0.5)).value
    return (size > _LARGE).where(_half_of_exp(size), near)


def tanh(x: Term) -> Term:
    size = abs(x)
    e = expm1_pair(2.0 * (size > 20.0).where(20.0, size))
    two_more = sum_of(2.0, e.high)
    near = divide(e, sum_of_larger(two_more.high, two_more.low + e.low)).value
    return _signed(x, (size >= 20.0).where(1.0, near))


def sigmoid(x: Term) -> Term:
    """1 / (1 + e^-x), computed from e^-|x|, which cannot overflow."""
    e = reduced(-clamped(abs(x), -1.0, 745.0))
    pair = exp_pair(e)
    small = Pair(scaled(pair.high, e.n), scaled(pair.low, e.n))
    one_more = sum_of_larger(1.0, small.high)
    below = sum_of_larger(one_more.high, one_more.low + small.low)
    one = Pair(x.like(1.0), x.like(0.0))
    result = divide(choose(x < 0.0, small, one), below).value
    return (x < -_LARGE).where(exp(x), result)


def _half_of_exp(size: Term) -> Term:
    e = reduced(clamped(size, -1.0, 720.0))
    return scaled(1.0 + (e.r + e.rest), e.n - 1)


def _signed(x: Term, result: Term) -> Term:
    """The odd function with this value at |x|: x itself near zero, with the sign of x."""
    result = (abs(x) < 2.0**-28).where(abs(x), result)
    result = (x < 0.0).where(-result, result)
    return x.equals(0.0).where(x, result)
