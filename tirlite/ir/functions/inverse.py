"""asin, acos, atan and atan2 of f64 Terms."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import inf, nan

from tirlite.ir.dtype import f64
from tirlite.ir.formula import Term
from tirlite.ir.functions import coefficients
from tirlite.ir.functions.constants import atan as exact_atan, parts, pi
from tirlite.ir.functions.pairs import Pair, add, choose, constant, divide, product_of, sum_of_larger
from tirlite.ir.functions.series import economised, polynomial

_ROUNDER = 1.5 * 2.0**52
_ROUNDER_BITS = 0x4338000000000000
_STEPS = 16  # steps of the arctangent table, from 0 to 1


@cache
def _arctangent() -> tuple[float, ...]:
    """(atan(t) - t) / t^3 in t^2, up to 2^-10."""
    return economised([Fraction((-1) ** (k + 1), 2 * k + 3) for k in range(12)], Fraction(0), Fraction(1, 1000), 5)


@cache
def _table() -> tuple[tuple[float, ...], tuple[float, ...]]:
    rows = [parts(exact_atan(Fraction(step, _STEPS)), 2) for step in range(_STEPS + 1)]
    return tuple(row[0] for row in rows), tuple(row[1] for row in rows)


def _atan_of_ratio(a: Pair) -> Pair:
    """The arctangent of a pair between 0 and 1: that of the nearest step plus the rest by the addition theorem."""
    shifted = a.high * float(_STEPS) + _ROUNDER
    step = shifted - _ROUNDER
    c = step * (1.0 / _STEPS)
    product = product_of(a.high, c)
    below = sum_of_larger(1.0, product.high)
    t = divide(Pair(a.high - c, a.low), Pair(below.high, below.low + (product.low + a.low * c)))
    z = t.high * t.high
    series = t.low + z * t.high * polynomial(_arctangent(), z)
    # The low bits are the number of the step; for nan they are arbitrary, so clamp it.
    row = (shifted.bits - _ROUNDER_BITS) & 31
    row = (row > _STEPS).where(_STEPS, row)
    high, low = (row.lookup(column) for column in _table())
    start = sum_of_larger(high, t.high)
    at_zero = sum_of_larger(t.high, series)
    moved = sum_of_larger(start.high, start.low + (low + series))
    return choose(step.equals(0.0), at_zero, moved)


def _pair_of(x: Term, y: Term) -> Pair:
    """x / y."""
    zero = x.like(0.0)
    return divide(Pair(x, zero), Pair(y, zero))


def atan(x: Term) -> Term:
    size = abs(x)
    is_large = size > 1.0
    moderate = (size > 2.0**60).where(2.0**60, size)
    inverse = _pair_of(x.like(1.0), is_large.where(moderate, 1.0))
    angle = _atan_of_ratio(choose(is_large, inverse, Pair(size, x.like(0.0))))
    right = add(constant(x, parts(pi() / 2, 2)), -angle)
    result = choose(is_large, right, angle).value
    result = (size < 2.0**-28).where(size, result)
    return result.with_sign_of(x)


def atan2(y: Term, x: Term) -> Term:
    """The angle of the point (x, y)."""
    height, width = abs(y), abs(x)
    is_steep = height > width
    long, short = is_steep.where(height, width), is_steep.where(width, height)
    # Scale both near to 1, so that the quotient loses no digits.
    exponent = (long.bits >> 52) & 0x7FF
    exponent = (exponent > 2045).where(2045, exponent)
    up = ((2046 - exponent) << 52).as_type(f64)
    tiny = long < 2.0**-900
    up = tiny.where(2.0**900, up)
    # Two infinities count as equal, and 0 / 0 as 0.
    both = short.equals(inf)
    long, short = both.where(1.0, long * up), both.where(1.0, short * up)
    long = long.equals(0.0).where(1.0, long)
    plain = short / long
    ratio = choose(long.equals(inf) | plain.equals(0.0), Pair(plain, x.like(0.0)), _pair_of(short, long))
    angle = _atan_of_ratio(ratio)
    angle = choose(plain < 2.0**-300, Pair(plain, x.like(0.0)), angle)
    half, whole = (constant(x, parts(value, 2)) for value in (pi() / 2, pi()))
    angle = choose(is_steep, add(half, -angle), angle)
    angle = choose((x.bits < 0), add(whole, -angle), angle)
    result = angle.value.with_sign_of(y)
    return (x.differs(x) | y.differs(y)).where(nan, result)


def _near_zero(x: Term) -> Term:
    """asin(x) - x up to 1/2."""
    z = x * x
    return x * z * polynomial(coefficients.arcsine(14), z)


def asin(x: Term) -> Term:
    size = abs(x)
    is_large = size > 0.5
    w = 0.5 * (1.0 - size)
    root = (is_large.where(w, 0.25)).sqrt()
    part = is_large.where(root, size)
    tail = _near_zero(part)
    missing = _root_error(is_large.where(w, 0.25), root)
    half_pi = parts(pi() / 2, 2)
    # pi / 2 - 2 asin(root): the larger parts first.
    first = sum_of_larger(half_pi[0], -2.0 * root)
    large = first.high + (first.low + (half_pi[1] - 2.0 * (tail + missing)))
    result = is_large.where(large, size + tail)
    return (size <= 1.0).where(result.with_sign_of(x), nan)


def acos(x: Term) -> Term:
    size = abs(x)
    is_large = size > 0.5
    w = is_large.where(0.5 * (1.0 - size), 0.25)
    root = w.sqrt()
    tail = _near_zero(is_large.where(root, x))
    missing = _root_error(w, root)
    half_pi, whole_pi = parts(pi() / 2, 2), parts(pi(), 2)
    near_one = 2.0 * (root + (tail + missing))
    first = sum_of_larger(whole_pi[0], -2.0 * root)
    near_minus_one = first.high + (first.low + (whole_pi[1] - 2.0 * (tail + missing)))
    middle = sum_of_larger(half_pi[0], -x)
    small = middle.high + (middle.low + (half_pi[1] - tail))
    result = is_large.where((x < 0.0).where(near_minus_one, near_one), small)
    return (size <= 1.0).where(result, nan)


def _root_error(w: Term, root: Term) -> Term:
    """The error of the rounded square root."""
    square = product_of(root, root)
    error = ((w - square.high) - square.low) / (2.0 * root)
    return root.equals(0.0).where(0.0, error)
